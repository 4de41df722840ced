// Sets theme and language on <html> before anything is painted. A file of its own, because the
// content security policy refuses inline scripts. Must agree with src/settings/preferences.ts.
(function () {
  var read = function (key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };
  var root = document.documentElement;
  var theme = read("cofer.theme");
  root.dataset.theme = theme === "light" || theme === "dark" ? theme : "system";
  var dark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.classList.toggle("dark", dark);
  var language = read("cofer.language");
  if (language !== "en" && language !== "ja") language = /^ja\b/.test(navigator.language) ? "ja" : "en";
  root.lang = language;
})();
