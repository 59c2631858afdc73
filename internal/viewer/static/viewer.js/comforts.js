// Small comforts; every page works without them.
// What a page's cells gain: one whose text is a shorter form of the end of its link says and copies that; copy buttons,
// where the browser lets a page copy: over https, or on this machine. Rows that change in place are dressed anew.
const zone = document.querySelector("a[href^='/-/timezone']")?.lastChild.textContent.trim() || "UTC";
const exact = new Intl.DateTimeFormat("en-GB", { timeZone: zone, dateStyle: "full", timeStyle: "long" });
const within = (root, selector) => [root, ...root.querySelectorAll(selector)].filter((at) => at.matches?.(selector));
const dress = (root) => {
  for (const at of within(root, "td:is(.code, .tel):not([data-copy])")) {
    const a = at.querySelector(":scope > a:not(:has(*))");
    const id = decodeURIComponent((a || at.closest("tr")?.querySelector("a[href]"))?.pathname.split("/").pop() || "");
    const ends = at.textContent.trim().split("…");
    if (!id || !a && !(id.startsWith(ends[0]) && id.endsWith(ends.at(-1)))) continue;
    at.dataset.copy = id;
    if (at.className === "code") (a || at).title ||= id;
  }
  for (const at of within(root, "time:not([title])")) {
    const t = new Date(at.dateTime);
    if (at.dateTime.includes("T") && !isNaN(t)) at.title = exact.format(t) + (zone === "UTC" ? "" : t.toISOString().replace(/.*T(.*)\..*/, ", $1 UTC"));
  }
  for (const at of within(root, "td.len")) {
    if (/^[0-9:]+$/.test(at.textContent)) at.title = at.textContent.split(":").reduce((sum, n) => sum * 60 + +n, 0) + " s";
  }
  for (const at of within(root, "td.dir")) at.title = at.textContent;
  for (const at of within(root, ".own")) at.title = "One of our own numbers";
  for (const at of navigator.clipboard ? within(root, "[data-copy]") : []) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.setAttribute("aria-label", "Copy " + at.dataset.copy);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(at.dataset.copy);
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), 1500);
    });
    at.tagName === "CODE" ? at.after(button) : at.append(button);
  }
};
dress(document);
addEventListener("dress", (e) => dress(e.target));

// A click beside the links of a row opens its record, as the row's first link does. While rows are selected it ticks the row.
addEventListener("click", (e) => {
  const row = e.target.closest?.(".box tbody tr, .hits > li"), box = row?.querySelector("[name=record]"), link = row?.querySelector("a[href]");
  if (!link || e.defaultPrevented || e.target.closest("a, button, input, label, summary, audio") || getSelection().toString()) return;
  if (box) return box.click();
  link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey: e.ctrlKey, metaKey: e.metaKey, shiftKey: e.shiftKey }));
});

// One box ticks all rows of the page; how many are ticked is said beside what is done with them.
const selecting = document.querySelector("#select");
if (selecting) {
  const boxes = () => [...document.querySelectorAll("[name=record]")], said = selecting.querySelector("p");
  const all = Object.assign(document.createElement("input"), { type: "checkbox" });
  all.setAttribute("aria-label", "Select all rows of this page");
  document.querySelector("th.choose")?.append(all);
  const count = () => {
    const ticked = boxes().filter((box) => box.checked).length;
    all.checked = ticked > 0 && ticked === boxes().length;
    all.indeterminate = ticked > 0 && !all.checked;
    said.textContent = ticked === 1 ? "1 row selected" : `${ticked || "No"} rows selected`;
    selecting.querySelectorAll("button").forEach((button) => { button.disabled = !ticked; });
  };
  all.addEventListener("change", () => boxes().forEach((box) => { box.checked = all.checked; }));
  document.addEventListener("change", count);
  said.setAttribute("role", "status");
  count();
}

// An image is fetched when it is asked for, and shown where it stands.
for (const at of document.querySelectorAll("a[data-image]")) {
  at.addEventListener("click", (e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    at.replaceChildren(Object.assign(new Image(), { src: at.href, alt: at.dataset.image }));
  }, { once: true });
}

// The segments of a short message are counted while it is typed, as its review counts them.
for (const area of document.querySelectorAll("textarea[data-gsm]")) {
  const said = Object.assign(document.createElement("p"), { className: "fine" });
  const fill = (sizes, one, each) => {
    const units = sizes.reduce((sum, n) => sum + n, 0);
    let segments = 1, room = units <= one ? one : each;
    for (const n of sizes) {
      if (n > room) segments++, room = each;
      room -= n;
    }
    return [units, segments];
  };
  const count = () => {
    const chars = [...area.value], { gsm, double } = area.dataset;
    const septets = chars.map((c) => gsm.includes(c) ? 1 : double.includes(c) ? 2 : 0), other = chars[septets.indexOf(0)];
    const [units, segments] = other ? fill(chars.map((c) => c.length), 70, 67) : fill(septets, 160, 153);
    said.textContent = `${segments} segment${segments === 1 ? "" : "s"}, ${units} characters ${other ? "(UCS-2), because of " + other : "(GSM-7)"}`;
    said.hidden = !chars.length;
  };
  area.after(said);
  area.addEventListener("input", count);
  count();
}
