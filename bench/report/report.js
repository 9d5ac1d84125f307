// SPDX-License-Identifier: Apache-2.0
// report.js - tips beside the pointer, and tables that sort. The page reads well without it.
"use strict";

const tip = document.getElementById("tip");

function showTip(event) {
  const mark = event.target.closest("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 12;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, room)) + "px";
  tip.style.top = Math.max(4, event.clientY - tip.offsetHeight - 10) + "px";
}

// The browser's own tips would come on top of ours, and do not come at all to a finger.
for (const title of document.querySelectorAll("[data-tip] > title")) title.remove();
for (const cell of document.querySelectorAll("td[title]")) {
  cell.dataset.tip = cell.title;
  cell.removeAttribute("title");
}
document.addEventListener("pointermove", showTip);
document.addEventListener("pointerdown", showTip);
document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

function compare(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const difference = Number(a) - Number(b);
  return Number.isNaN(difference) ? a.localeCompare(b) : difference;
}

function sortBy(head, column) {
  const ascending = head.getAttribute("aria-sort") !== "ascending";
  const body = head.closest("table").tBodies[0];
  for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const value = (row) => row.cells[column].dataset.value;
  const rows = [...body.rows].sort((a, b) => {
    const order = compare(value(a), value(b));
    return value(a) === "" || value(b) === "" || ascending ? order : -order;
  });
  body.append(...rows);
}

for (const head of document.querySelectorAll("table.sortable thead th")) {
  head.firstElementChild.addEventListener("click", () => sortBy(head, head.cellIndex));
}
