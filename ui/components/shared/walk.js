// Keyboard navigation in a chart: one stop of the Tab key; arrow keys, Home and End inside.

/** Where a key leads from a place [row, number] in rows of these lengths; null where it is no key to walk with. */
function stepTo(key, [row, number], lengths) {
  const down = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
  const right = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[key] ?? 0;
  if (!down && !right) return null;
  const to = Math.min(Math.max(row + down, 0), lengths.length - 1);
  return [to, Math.min(Math.max(number + right, 0), lengths[to] - 1)];
}

/** Lets a chart be walked through; returns what ends that.
 * @param lengths gives how many points or cells each row has.
 * @param visit is told where the walk is.
 * @param take is told where Enter or the space bar was pressed.
 * @param leave is called when the chart loses the focus.
 * @param walk has as `at` where the walk is, null before its first step, and as `from` where that starts. */
function walkable(chart, name, { lengths, visit, take, leave }, walk) {
  chart.tabIndex = 0;
  chart.setAttribute("role", "group");
  chart.setAttribute("aria-label", name);
  const press = (event) => {
    const rows = lengths();
    if (!rows.length) return;
    const at = walk.at && [Math.min(walk.at[0], rows.length - 1), walk.at[1]];
    if (event.key === "Enter" || event.key === " ") {
      if (!at) return;
      event.preventDefault();
      take([at[0], Math.min(at[1], rows[at[0]] - 1)]);
      return;
    }
    const next = stepTo(event.key, at ?? walk.from, rows);
    if (!next) return;
    event.preventDefault();
    walk.at = next;
    visit(next);
  };
  chart.addEventListener("keydown", press);
  chart.addEventListener("blur", leave);
  return () => {
    chart.removeEventListener("keydown", press);
    chart.removeEventListener("blur", leave);
  };
}
