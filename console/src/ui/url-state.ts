// Filters live in the query string, so that a link shows what its sender saw.
import { useCallback } from "react";
import { useSearchParams } from "wouter";

/** One parameter of the address; the default is left out of it. */
export function useUrlState(key: string, initial = ""): [string, (value: string) => void] {
  const [parameters, setParameters] = useSearchParams();
  const set = useCallback(
    (value: string) => {
      // From the address itself: two parameters may change before the page is drawn again.
      const next = new URLSearchParams(window.location.search);
      if (value === initial) next.delete(key);
      else next.set(key, value);
      setParameters(next, { replace: true });
    },
    [key, initial, setParameters],
  );
  return [parameters.get(key) ?? initial, set];
}
