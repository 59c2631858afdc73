// Small comforts; every page works without them.
// A browser that has said no timezone says its own, once. The page of timezones takes it without a button.
const menu = document.querySelector("#zone");
menu?.addEventListener("change", () => menu.form.submit());
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (document.documentElement.dataset.zone === "unset" && here && document.querySelector("a[href^='/-/timezone']").lastChild.textContent.trim() !== here) {
  try {
    if (!sessionStorage.getItem("zone")) {
      sessionStorage.setItem("zone", here);
      const form = Object.assign(document.createElement("form"), { method: "post", action: "/-/timezone", hidden: true });
      for (const [name, value] of [["zone", here], ["back", location.pathname + location.search]]) form.append(Object.assign(document.createElement("input"), { name, value }));
      document.body.append(form);
      form.submit();
    }
  } catch { /* no storage, no guess */ }
}

// What a page's cells gain: one whose text is a shorter form of the end of its link says and copies that; copy buttons,
// where the browser lets a page copy: over https, or on this machine. Rows that change in place are dressed anew.
const within = (root, selector) => [root, ...root.querySelectorAll(selector)].filter((at) => at.matches?.(selector));
const dress = (root) => {
  for (const at of within(root, "td:is(.code, .tel):not([data-copy])")) {
    const a = at.querySelector(":scope > a:not(:has(*))");
    if (!a) continue;
    at.dataset.copy = decodeURIComponent(a.pathname.split("/").pop());
    if (at.className === "code") a.title ||= at.dataset.copy;
  }
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

// A click beside the links of a row opens its record, as the row's first link does.
addEventListener("click", (e) => {
  const link = e.target.closest?.(".box tbody tr, .hits > li")?.querySelector("a[href]");
  if (!link || e.defaultPrevented || e.target.closest("a, button, input, label, summary, audio") || getSelection().toString()) return;
  link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey: e.ctrlKey, metaKey: e.metaKey, shiftKey: e.shiftKey }));
});

// An image is fetched when it is asked for, and shown where it stands.
for (const at of document.querySelectorAll("a[data-image]")) {
  at.addEventListener("click", (e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    at.replaceChildren(Object.assign(new Image(), { src: at.href, alt: at.dataset.image }));
  }, { once: true });
}
