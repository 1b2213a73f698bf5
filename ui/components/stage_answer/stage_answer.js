// Passes on what the stage asks the server for, and the answers. One question is asked at a time; of several that wait, all are asked in turn.
// A question may be there before this is drawn, and one whose run was replaced by another run comes back without an answer: it is asked anew.

function show({ data, attached, setTriggerValue }) {
  const { asked } = document.attnvizStage ?? {}; // by its number, what is done with an answer
  const answered = asked?.get(data.id);
  if (answered) {
    asked.delete(data.id);
    if (data.error) answered.failed(new Error(data.error));
    else answered.done({ ...data, bytes: attached });
  }
  const send = () => {
    const [next] = document.attnvizStage?.asked ?? [];
    if (next) setTriggerValue("asked", { id: next[0], what: next[1].what, query: next[1].query });
  };
  send();
  document.addEventListener("attnviz-asked", send);
  return () => document.removeEventListener("attnviz-asked", send);
}
