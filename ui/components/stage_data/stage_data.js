// Hands on the document and the numbers of a text to the stage, which may be drawn before or after them.

function show({ data, attached }) {
  (document.attnvizStage ??= {}).given = { ...data, bytes: attached };
  document.dispatchEvent(new Event("attnviz-stage"));
}
