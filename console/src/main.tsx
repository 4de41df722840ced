// Where the page begins: the token out of the address, the language, then the page.
import "./styles.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { adoptTokenFromAddress } from "./api/token";
import { App } from "./app";
import { startLanguage } from "./i18n";
import { language } from "./settings/preferences";

adoptTokenFromAddress();
// A new link that is opened in the same tab changes only what stands after the `#`.
window.addEventListener("hashchange", () => adoptTokenFromAddress() && window.location.reload());
await startLanguage(language.get());
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
