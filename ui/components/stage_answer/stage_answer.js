// Passes on what the stage asks the server for, and the answers. One question is asked at a time; of several that wait, all are asked in turn.

function show({ data, attached, setTriggerValue }) {
  const mail = (document.attnvizStage ??= {});
  const asked = (mail.asked ??= new Map()); // by its number, what is done with an answer
  const isNew = asked.has(data.id);
  if (isNew) {
    const { done, failed } = asked.get(data.id);
    asked.delete(data.id);
    if (data.error) failed(new Error(data.error));
    else done({ ...data, bytes: attached });
  }
  const send = () => {
    const [next] = asked;
    if (next) setTriggerValue("asked", { id: next[0], what: next[1].what, query: next[1].query });
  };
  mail.ask = (what, query) =>
    new Promise((done, failed) => {
      mail.number = (mail.number ?? Date.now()) + 1;
      asked.set(mail.number, { what, query, done, failed });
      if (asked.size === 1) send();
    });
  if (isNew) send();
}
