// Follows the log of a server while its page is open.
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { API, type ApiFailure } from "../api/client";
import { followStream } from "../api/event-stream";
import { serverPath } from "../api/queries";
import type { LogEntry } from "../api/schema";
import { LogBuffer } from "./log-buffer";

/** All that the daemon keeps. */
const TAIL = 2000;

type Log = { lines: readonly LogEntry[]; missed: number; failure: ApiFailure | null };

export function useLog(serverId: string): Log {
  // oxlint-disable-next-line exhaustive-deps -- another server has another log
  const buffer = useMemo(() => new LogBuffer(), [serverId]);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    void followStream({
      url: `${API}${serverPath(serverId)}/logs?tail=${TAIL}&follow=true`,
      signal: stop.signal,
      onOpen: () => setFailure(null),
      onMessage: ({ event, data }) => {
        if (event === "logLine") buffer.add(JSON.parse(data) as LogEntry);
      },
      onAway: () => {},
      onRefused: setFailure,
    });
    return () => stop.abort();
  }, [serverId, buffer]);
  const lines = useSyncExternalStore(buffer.subscribe, buffer.read);
  return { lines, missed: buffer.missed, failure };
}
