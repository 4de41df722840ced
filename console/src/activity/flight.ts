// What the flight recorder keeps of a call, and running it again.
import { queryOptions } from "@tanstack/react-query";
import { request } from "../api/client";
import type { RecordedCall, Replayed } from "../api/schema";

const flightPath = (callId: string) => `/activity/${encodeURIComponent(callId)}`;

/** A finished call does not change any more. */
export const flightQuery = (callId: string) =>
  queryOptions({
    queryKey: ["flight", callId],
    queryFn: ({ signal }) => request<RecordedCall>(flightPath(callId), { signal }),
    staleTime: Infinity,
    gcTime: 60_000,
    refetchOnWindowFocus: false,
  });

/** The same request again, or with what the body says instead. */
export const replay = (callId: string, body?: string) =>
  request<Replayed>(`${flightPath(callId)}/replay`, { method: "POST", body });
