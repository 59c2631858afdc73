// Keys: everything that can be reached with a mouse, by single keys after Miniflux.
{
  const help = document.querySelector("#keys");
  const on = help.querySelector("[name=keys]");
  try { on.checked = localStorage.getItem("keys") !== "off"; } catch { /* they are on */ }
  on.addEventListener("change", () => { try { localStorage.setItem("keys", on.checked ? "on" : "off"); } catch { /* for this page alone */ } });
  for (const at of document.querySelectorAll("[popovertarget=keys]")) at.hidden = false;

  // The rows of every table, and what searches found. What is at hand is the one with the focus, or the last that had it.
  const rows = () => [...document.querySelectorAll("main tbody tr, main .hits > li")].filter((row) => row.checkVisibility());
  let last;
  const at = () => document.activeElement.closest("tbody tr, .hits > li") ?? (last?.isConnected ? last : null);
  const move = (by) => {
    const all = rows(), i = all.indexOf(at());
    const row = all[i < 0 ? (by > 0 ? 0 : all.length - 1) : i + by];
    if (!row) return;
    const to = row.querySelector("a[href]") ?? row;
    if (to === row) row.tabIndex = -1;
    to.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
    last = row;
  };
  const turn = (rel) => document.querySelector(`main a[rel=${rel}]`)?.click();
  const search = () => {
    const box = document.querySelector("main [data-search]") ?? document.querySelector("#q");
    box?.focus();
    box?.select();
  };
  const keys = {
    j: () => move(1), k: () => move(-1), o: () => at()?.querySelector("a[href]")?.click(),
    h: () => turn("prev"), l: () => turn("next"), "[": () => turn("prev"), "]": () => turn("next"), "/": search,
  };

  // g waits for a second key that says where to.
  let going = 0;
  const go = (key) => {
    going = 0;
    const to = help.querySelector(`a[data-key="${CSS.escape(key)}"]`);
    to?.click();
    return !!to;
  };

  addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.isComposing || e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = e.target.closest?.("input, select, textarea, audio, [contenteditable]");
    if (e.key === "Escape") {
      going = 0;
      if (typing && !document.querySelector(":popover-open")) typing.blur();
      return;
    }
    if (typing || !on.checked) return;
    if (e.key === "?") {
      e.preventDefault();
      help.togglePopover();
      return;
    }
    if (document.querySelector(":popover-open")) return;
    if (going && e.timeStamp - going < 2000) {
      if (go(e.key)) e.preventDefault();
      return;
    }
    if (e.key === "g") return void (going = e.timeStamp);
    if (keys[e.key]) e.preventDefault(), keys[e.key]();
  });

  // The buttons that move a column do it in place; Apply sends them all.
  document.querySelector(".columns")?.addEventListener("click", (e) => {
    const button = e.target.closest("[name=earlier], [name=later]");
    if (!button) return;
    e.preventDefault();
    const row = button.closest("li"), earlier = button.name === "earlier";
    const to = earlier ? row.previousElementSibling : row.nextElementSibling;
    if (to) earlier ? to.before(row) : to.after(row);
    button.focus();
    button.scrollIntoView({ block: "nearest" });
  });
}
