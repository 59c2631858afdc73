// Completion: what the word at hand in a box for searches may become. Only that word is sent, and no number.
{
  const boxes = [...document.querySelectorAll("main [name=q][type=search], .jump [name=q], [name='understudy.q']")];
  const list = Object.assign(document.createElement("ul"), { id: "offers", className: "offers", popover: "manual", ariaLabel: "What it may become" });
  list.setAttribute("role", "listbox");
  if (boxes.length) document.body.append(list);
  let at, waiting, asked, typed; // the box, a timer, the request under way, the word that it asks about
  const options = () => [...list.children], active = () => list.querySelector("[aria-selected=true]");
  const close = () => {
    clearTimeout(waiting);
    asked?.abort();
    list.hidePopover?.();
    at?.setAttribute("aria-expanded", "false");
    at?.removeAttribute("aria-activedescendant");
  };
  const choose = (option) => {
    active()?.setAttribute("aria-selected", "false");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    at.setAttribute("aria-activedescendant", option.id);
  };
  // The word before the caret: a name, or a name with a value that is no number of somebody.
  const word = () => at.value.slice(0, at.selectionStart).match(/(?:^|[\s(])-?([a-z_][\w.]*(?::[^\s"()]*)?)$/i)?.[1];
  // Whether it is the word that was asked about, with letters more or less.
  const same = () => {
    const now = word();
    return now && typed && (now.startsWith(typed) || typed.startsWith(now));
  };
  const take = (option) => {
    if (!same()) return close(); // the caret is elsewhere
    const text = option.dataset.text, end = at.selectionStart, begin = end - word().length, more = text.endsWith(":") ? "" : " ";
    at.setRangeText(text + more, begin, end, "end");
    close();
    if (!more) ask();
  };
  const show = (offers) => {
    const chosen = active()?.dataset.text;
    list.replaceChildren(...offers.map(({ text, note }, i) => {
      const option = Object.assign(document.createElement("li"), { id: "offer" + i });
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.dataset.text = text;
      option.append(Object.assign(document.createElement("code"), { textContent: text }), " ", Object.assign(document.createElement("span"), { className: "fine", textContent: note }));
      option.addEventListener("mousedown", (e) => { e.preventDefault(); take(option); });
      return option;
    }));
    if (!offers.length) return close();
    const again = options().find((option) => option.dataset.text === chosen);
    if (again) choose(again); // it was chosen while this answer was under way
    else at.removeAttribute("aria-activedescendant");
    const box = at.getBoundingClientRect();
    list.style.left = `${box.left}px`;
    list.style.top = `${box.bottom + 4}px`;
    list.showPopover();
    at.setAttribute("aria-expanded", "true");
  };
  const ask = async () => {
    typed = word();
    if (!typed || typed.length < 2 || /\+|\d(?:[-./]?\d){3}/.test(typed.replace(/\d{4}-\d\d/, ""))) return close();
    asked?.abort();
    asked = new AbortController();
    const params = new URLSearchParams({ word: typed });
    for (const [, kind] of at.value.matchAll(/(?:^|[\s(])kind:(\w+)(?=\s)/g)) params.append("kind", kind);
    if (at.name !== "q") params.append("kind", location.pathname.split("/")[2]);
    try {
      const answer = await fetch("/search/complete?" + params, { signal: asked.signal });
      if (answer.ok) show((await answer.json()).offers.filter(({ text }) => text !== typed));
    } catch { /* the next letter asks again */ }
  };
  for (const box of boxes) {
    box.setAttribute("aria-keyshortcuts", "/ Control+K");
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "offers" })) box.setAttribute(name, value);
    box.addEventListener("input", () => {
      at = box;
      if (!same()) close(); // what is offered is of another word
      clearTimeout(waiting);
      waiting = setTimeout(ask, 60);
    });
    box.addEventListener("blur", () => { if (at === box) close(); });
    box.addEventListener("keydown", (e) => {
      if (!list.matches(":popover-open")) return;
      const all = options(), i = all.indexOf(active());
      if (e.key === "ArrowDown" || e.key === "ArrowUp") choose(all[(i + (e.key === "ArrowDown" ? 1 : i < 0 ? 0 : -1) + all.length) % all.length]);
      else if ((e.key === "Enter" || e.key === "Tab") && active()) take(active());
      else if (e.key === "Escape") close();
      else return;
      e.preventDefault();
    });
  }
}
