// Checks a draft with the daemon while it is typed: after a pause, and never two at once for long.
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { request } from "../../api/client";
import type { Validation } from "../../api/schema";
import { type Checked, NOTHING, readValidation } from "./check";
import { type Draft, bodyOf } from "./draft";

const PAUSE_MS = 300;

export function useCheck(draft: Draft, self: string | null): Checked {
  const { t } = useTranslation();
  const [checked, setChecked] = useState<Checked>(NOTHING);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const validation = await request<Validation>("/mcp/validate", {
          method: "POST",
          body: bodyOf(draft),
          signal: stop.signal,
        });
        if (!stop.signal.aborted) setChecked(readValidation(validation, draft, self, t));
      } catch {
        // Checking is a help, not a condition: saving tells what is wrong.
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [draft, self, t]);
  return checked;
}
