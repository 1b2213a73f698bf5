// The weights of all heads and their colours, for the parts of the stage: a line of JSON, then a byte for each cell. Rests on stage.

function show({ data }) {
  const bytes = new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);
  const end = bytes.indexOf(10);
  const { scale, ...heads } = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  tellStage({ heads: { ...heads, cells: bytes.subarray(end + 1) }, scale });
}
