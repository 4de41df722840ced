// Reads Server-Sent Events out of a stream of bytes. EventSource cannot send the bearer token,
// so the console reads the stream with fetch.

export type SseMessage = { id: string | null; event: string; data: string };

/** No event of the daemon comes near this; a line that does is not one. */
const MAX_LINE = 4 * 1024 * 1024;

/** The pieces between line ends; a CR at the end of a chunk waits for its LF. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    const complete = rest.endsWith("\r") ? rest.length - 1 : rest.length;
    const lines = rest.slice(0, complete).split(/\r\n|\n|\r/);
    rest = (lines.pop() ?? "") + rest.slice(complete);
    yield* lines;
    if (rest.length > MAX_LINE) throw new Error("a line of the event stream is too long");
  }
}

/** Every message of the stream, in order; what stands without a blank line at its end is dropped. */
export async function* readSse(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<SseMessage> {
  let id: string | null = null;
  let event = "";
  let data: string[] = [];
  for await (const line of linesOf(chunks)) {
    if (line === "") {
      if (data.length > 0) yield { id, event: event || "message", data: data.join("\n") };
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") event = value;
    else if (field === "id" && !value.includes("\0")) id = value;
  }
}

/** The chunks of a body; leaving the loop cancels the request. */
export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
