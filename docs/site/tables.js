// A field above each long table, which hides the rows that do not hold what is typed.
const LONG = 15;

for (const table of document.querySelectorAll(".md-typeset table")) {
  const rows = [...table.querySelectorAll("tbody tr")];
  if (rows.length < LONG) continue;
  const field = document.createElement("input");
  Object.assign(field, { type: "search", placeholder: "Search this table", className: "table-search" });
  field.setAttribute("aria-label", "Search this table");
  field.addEventListener("input", () => {
    const typed = field.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(typed);
  });
  table.before(field);
}
