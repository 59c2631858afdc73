// What a browser chooses for itself. It works without, on the page of timezones and themes.
// A browser that has said no timezone says its own, once. A page with times is loaded again to show them in it, unless somebody
// has begun to fill in a form: typing stops the loading, too. The page of timezones takes a choice without a button.
const menu = document.querySelector("#zone");
menu?.addEventListener("change", () => menu.form.submit());
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (document.documentElement.dataset.zone === "unset" && here && document.querySelector("a[href^='/-/timezone']").lastChild.textContent.trim() !== here) {
  try {
    if (!sessionStorage.getItem("zone")) {
      sessionStorage.setItem("zone", here);
      let typed = [...document.querySelectorAll("input, textarea")].some((at) => at.value !== at.defaultValue), loading = false;
      addEventListener("input", () => {
        typed = true;
        if (loading) stop();
      });
      fetch("/-/timezone", { method: "POST", body: new URLSearchParams({ zone: here }), redirect: "manual", keepalive: true }).then(() => {
        if (!document.querySelector("time")) document.querySelector("a[href^='/-/timezone']").lastChild.textContent = " " + here;
        else if (!typed) location.reload(loading = true);
      }).catch(() => { /* the next session tries again */ });
    }
  } catch { /* no storage, no guess */ }
}

// A password is shown while its reader wants to check it. It is sent as a password again, so that browsers offer to keep it.
for (const at of document.querySelectorAll("[autocomplete=current-password]")) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "reveal", textContent: "Show password" });
  const show = (on) => {
    at.type = on ? "text" : "password";
    button.setAttribute("aria-pressed", on);
  };
  show(false);
  button.addEventListener("click", () => show(at.type === "password"));
  at.form.addEventListener("submit", () => show(false));
  at.after(button);
}

