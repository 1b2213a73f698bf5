// The weights of all heads, for the parts of the stage: a line of JSON, then a byte for each cell. Rests on stage.

function show({ data }) {
  const bytes = new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);
  const end = bytes.indexOf(10);
  tellStage({ heads: { ...JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))), cells: bytes.subarray(end + 1) } });
}
