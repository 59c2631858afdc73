// Keys: everything that can be reached with a mouse, by single keys after Miniflux.
{
  let off = false;
  try { off = localStorage.getItem("keys") === "off"; } catch { /* they are on */ }

  // What keys do is a page of its own; it is fetched when it is first needed, and shown over this one.
  const link = document.querySelector("[data-keys]");
  const shown = document.querySelector("#keys");
  let fetched;
  const fetchHelp = async () => {
    const page = new DOMParser().parseFromString(await (await fetch(link.href)).text(), "text/html");
    const help = page.querySelector("#keys");
    help.popover = "auto";
    help.setAttribute("role", "dialog");
    help.querySelector("[popovertarget]").hidden = false;
    document.body.append(help);
    return help;
  };
  const help = () => (fetched ??= (shown ? Promise.resolve(shown) : fetchHelp()).then((help) => {
    const on = help.querySelector("[name=keys]");
    on.closest("[hidden]").hidden = false;
    on.checked = !off;
    on.addEventListener("change", () => {
      off = !on.checked;
      try { localStorage.setItem("keys", off ? "off" : "on"); } catch { /* for this page alone */ }
    });
    return help;
  }).catch(() => { fetched = null; }));
  const toggle = async () => { (await help())?.popover && (await fetched).togglePopover(); };
  if (shown) help();
  link?.addEventListener("click", (e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    toggle();
  });

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
    x: () => at()?.querySelector("[name=record]")?.click(),
  };

  // g waits for a second key that says where to.
  let going = 0;
  const go = async (key) => {
    going = 0;
    (await help())?.querySelector(`a[data-key="${CSS.escape(key)}"]`)?.click();
  };

  addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key === "k") return e.preventDefault(), search();
    if (e.defaultPrevented || e.isComposing || e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = e.target.closest?.("input:not([type=checkbox]), select, textarea, audio, [contenteditable]");
    if (e.key === "Escape") {
      going = 0;
      if (typing && !document.querySelector(":popover-open")) typing.blur();
      return;
    }
    if (typing || off || !link) return;
    if (e.key === "?") {
      e.preventDefault();
      toggle();
      return;
    }
    if (document.querySelector(":popover-open")) return;
    if (going && e.timeStamp - going < 2000) {
      e.preventDefault();
      return void go(e.key);
    }
    if (e.key === "g") return help(), void (going = e.timeStamp);
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
