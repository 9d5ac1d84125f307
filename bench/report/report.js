// SPDX-License-Identifier: Apache-2.0
// report.js - tips beside the pointer or what has the focus, and tables that sort. The page reads
// well without it.
"use strict";

const tip = document.getElementById("tip");

function showTip(target, x, y) {
  const mark = target.closest("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 12;
  tip.style.left = Math.max(4, Math.min(x + 14, room)) + "px";
  tip.style.top = Math.max(4, y - tip.offsetHeight - 10) + "px";
}

function showTipAtPointer(event) {
  showTip(event.target, event.clientX, event.clientY);
}

function showTipAtFocus(event) {
  const box = event.target.getBoundingClientRect();
  showTip(event.target, box.left, box.top);
}

function hideTip() {
  tip.hidden = true;
}

// The browser's own tips would come on top of ours, and do not come at all to a finger or a
// keyboard. What they say stays with the marks for those who listen.
for (const title of document.querySelectorAll("[data-tip] > title")) {
  title.parentElement.setAttribute("aria-label", title.textContent);
  title.remove();
}
for (const cell of document.querySelectorAll("td[title]")) {
  cell.dataset.tip = cell.title;
  cell.removeAttribute("title");
  cell.tabIndex = 0;
}
document.addEventListener("pointermove", showTipAtPointer);
document.addEventListener("pointerdown", showTipAtPointer);
document.addEventListener("focusin", showTipAtFocus);
document.addEventListener("focusout", hideTip);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
document.addEventListener("scroll", hideTip, { passive: true });

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
