// The weights of all heads, a byte for each cell, and their colours, for the parts of the stage. Rests on stage.

function show({ data, attached }) {
  const { scale, ...heads } = data;
  tellStage({ heads: { ...heads, cells: attached }, scale });
}
