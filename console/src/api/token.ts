// The bearer token of this browser: taken from the link that `cofer console` prints
// (`/#token=…`), kept for this origin, and out of the address bar at once.

const KEY = "cofer.token";

/** Takes the token out of the address, and tells whether there was one. */
export function adoptTokenFromAddress(): boolean {
  const fragment = new URLSearchParams(window.location.hash.slice(1));
  const token = fragment.get("token");
  if (!token) return false;
  storeToken(token);
  const { pathname, search } = window.location;
  window.history.replaceState(null, "", pathname + search);
  return true;
}

export function readToken(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return fallback;
  }
}

export function storeToken(token: string | null): void {
  fallback = token;
  try {
    if (token === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, token);
  } catch {
    // Storage is switched off in this browser: the token lives as long as the page.
  }
}

let fallback: string | null = null;
