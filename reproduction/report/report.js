"use strict";

// A cell's number in full, or its text; null where it is empty.
function content(cell) {
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return cell.textContent.trim() || null;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

// Sorts a table's rows by a column. Rows without a value stay last, and rows with the
// same value keep their order.
function sort(table, heading) {
  const index = heading.cellIndex;
  const direction =
    heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  const sign = direction === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => [content(row.cells[index]), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * compare(a, b);
  });
  body.append(...rows.map(([, row]) => row));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", direction);
  document.getElementById("status").textContent =
    `Sorted by ${heading.textContent.trim()}, ${direction}.`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) sort(table, button.closest("th"));
  });
}

// What is wider than its place takes a stop of the Tab key, and fades where it goes on.
function mark(element) {
  const hidden = element.scrollWidth - element.clientWidth;
  element.tabIndex = hidden > 0 ? 0 : -1;
  element.classList.toggle("more", element.scrollLeft < hidden - 1);
}

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) mark(target);
});
for (const element of document.querySelectorAll(".scroll, .plate[tabindex]")) {
  resized.observe(element);
  element.addEventListener("scroll", () => mark(element), { passive: true });
}

// Paper shows what is closed on a screen.
let closed = [];
window.addEventListener("beforeprint", () => {
  closed = Array.from(document.querySelectorAll("details:not([open])"));
  for (const details of closed) details.open = true;
});
window.addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
  closed = [];
});
