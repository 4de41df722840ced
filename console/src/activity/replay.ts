// A recorded request that is changed before it is sent again: the part of it that a person edits,
// and the request with that part. Pure.
import type { RecordedCall } from "../api/schema";

/** What of a request is edited: a tool's arguments, or else all of its params. */
export type Editable = {
  part: "arguments" | "params";
  /** As it was sent, with line breaks. */
  text: string;
  /** The whole body of the replay, with the typed JSON as it was typed. */
  body: (typed: string) => string;
};

type Request = { method?: unknown; params?: unknown };

/** Nothing where the request is not kept whole. */
export function editableOf(flight: RecordedCall): Editable | null {
  if (flight.request.truncated) return null;
  let request: Request;
  try {
    request = JSON.parse(flight.request.text) as Request;
  } catch {
    return null;
  }
  const params = isObject(request.params) ? request.params : {};
  if (request.method !== "tools/call")
    return { part: "params", text: pretty(params), body: (typed) => `{"params":${typed}}` };
  const { arguments: sent, ...others } = params;
  const members = Object.entries(others).map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)},`);
  return {
    part: "arguments",
    text: pretty(sent ?? {}),
    body: (typed) => `{"params":{${members.join("")}"arguments":${typed}}}`,
  };
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const pretty = (value: unknown) => JSON.stringify(value, null, 2);
