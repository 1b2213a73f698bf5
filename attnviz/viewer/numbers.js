// Numbers as text.

// To three digits, as `number_text` of attnviz/figures/numbers.py writes it: "0.475", "1.47", "4.5 × 10⁻⁴".
export function numberText(number) {
  if (!Number.isFinite(number)) return "none";
  if (number === 0) return "0";
  const size = Math.abs(Number(number.toPrecision(3)));
  if (size >= 1000 && size < 1e6) return Math.round(number).toLocaleString("en").replace("-", "−");
  if (size >= 0.001 && size < 1e6) return number.toPrecision(3).replace("-", "−");
  const [digits, exponent] = Math.abs(number).toExponential(1).split("e");
  const raised = Array.from(String(Number(exponent)), (digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])).join("");
  return `${number < 0 ? "−" : ""}${digits === "1.0" ? "" : `${digits}\u00a0×\u00a0`}10${raised}`;
}
