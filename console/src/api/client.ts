// One request to the daemon: the token goes along, and every failure becomes an `ApiFailure`
// that says what happened and what to do next.
import type { ErrorBody, ErrorKind, FieldError } from "./schema";
import { readToken } from "./token";

export const API = "/api/v1";

/** Why a request failed. `unreachable` is ours: no answer came at all. */
export class ApiFailure extends Error {
  readonly kind: ErrorKind | "unreachable";
  readonly status: number;
  readonly hint: string | null;
  readonly details: unknown;
  readonly traceId: string | null;

  constructor(
    kind: ErrorKind | "unreachable",
    status: number,
    message: string,
    more: Partial<ErrorBody["error"]> = {},
  ) {
    super(message);
    this.name = "ApiFailure";
    this.kind = kind;
    this.status = status;
    this.hint = more.hint ?? null;
    this.details = more.details;
    this.traceId = more.trace_id ?? null;
  }

  /** The fields that were refused, each with what is wrong with it. */
  get fields(): FieldError[] {
    const fields = (this.details as { fields?: unknown } | undefined)?.fields;
    return Array.isArray(fields) ? (fields as FieldError[]) : [];
  }
}

export type RequestOptions = {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Sent as JSON; a text is sent as it is. */
  body?: unknown;
  signal?: AbortSignal;
};

/** Called when the daemon does not know our token (any more). */
let onUnauthorized: () => void = () => {};
export function whenUnauthorized(handler: () => void): void {
  onUnauthorized = handler;
}

export function authorized(headers: Record<string, string> = {}): Record<string, string> {
  const token = readToken();
  return token ? { ...headers, Authorization: `Bearer ${token}` } : headers;
}

/** Asks the daemon and reads its answer as JSON. */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const { method = "GET", body, signal } = options;
  const headers = authorized(body === undefined ? {} : { "Content-Type": "application/json" });
  let answer: Response;
  try {
    answer = await fetch(API + path, {
      method,
      headers,
      signal: signal ?? null,
      body: body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiFailure("unreachable", 0, "the daemon did not answer");
  }
  if (!answer.ok) throw await failureOf(answer);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

export async function failureOf(answer: Response): Promise<ApiFailure> {
  if (answer.status === 401) onUnauthorized();
  const body: unknown = await answer.json().catch(() => null);
  const error = (body as ErrorBody | null)?.error;
  if (!error?.kind) return new ApiFailure("internal", answer.status, `HTTP ${answer.status}`);
  return new ApiFailure(error.kind, answer.status, error.message, error);
}
