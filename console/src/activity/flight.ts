// What the flight recorder keeps of a call, and running it again.
import { queryOptions } from "@tanstack/react-query";
import { request } from "../api/client";
import type { ActivityEntry, LogEntry } from "../api/schema";

/** A text that went over the wire. */
export type WireText = { text: string; bytes: number; truncated: boolean; redacted: boolean };

export type Flight = ActivityEntry & {
  request: WireText;
  response?: WireText | null;
  /** What the server wrote to stderr from the call's beginning to its end. */
  stderr: LogEntry[];
  replayable: boolean;
};

const flightPath = (callId: string) => `/activity/${encodeURIComponent(callId)}`;

/** A finished call does not change any more. */
export const flightQuery = (callId: string) =>
  queryOptions({
    queryKey: ["flight", callId],
    queryFn: ({ signal }) => request<Flight>(flightPath(callId), { signal }),
    staleTime: Infinity,
    gcTime: 60_000,
    refetchOnWindowFocus: false,
  });

export type Replayed = { call_id: string; result: unknown };

export const replay = (callId: string) => request<Replayed>(`${flightPath(callId)}/replay`, { method: "POST" });
