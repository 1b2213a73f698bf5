// The button beside a selected token that masks or restores it.

function maskButton(token, mask, apply) {
  const button = makeButton("mask", token.was ? "unmask" : "mask", () => apply(token.position));
  button.title = token.was
    ? `Bring “${token.was}” back.`
    : `Put ${mask} in the place of “${token.label}” and compute everything anew.`;
  button.setAttribute("aria-label", button.title);
  return keyed(button, `mask ${token.position}`);
}
