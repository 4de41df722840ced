import { act, renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { answer, conversation, event, question } from "../test/chat";
import type { ChatEvent, Conversation } from "./types";
import { useConversation } from "./use-conversation";

const at = "2026-01-01T00:00:01Z";
const text = ({ id, event: name, data }: Pick<ChatEvent, "id" | "data"> & { event: string }) =>
  `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** A daemon with one conversation, whose events the test sends. */
function daemon(read: () => Conversation | null) {
  const streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  const asked: { url: string; after: string | null }[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    asked.push({ url, after: new Headers(init.headers).get("last-event-id") });
    if (!url.endsWith("/events")) {
      const found = read();
      const missing = { error: { kind: "not_found", message: "there is no such conversation", trace_id: "" } };
      return Promise.resolve(
        url.includes("conversations/") && !found ? Response.json(missing, { status: 404 }) : Response.json(found ?? {}),
      );
    }
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void streams.push(controller) });
    return Promise.resolve(new Response(body));
  });
  const send = (message: Parameters<typeof text>[0]) =>
    streams.at(-1)!.enqueue(new TextEncoder().encode(text(message)));
  const follows = () => asked.filter(({ url }) => url.endsWith("/events"));
  return { asked, follows, send };
}

afterEach(() => vi.unstubAllGlobals());

test("a page reads the conversation and then hears what comes after it", async () => {
  const running = conversation({
    running: true,
    turn_id: "t",
    messages: [question("u"), answer("a", { state: "streaming", text: "Hel" })],
  });
  const { follows, send } = daemon(() => running);
  const { result } = renderHook(() => useConversation("c"));
  await waitFor(() => expect(follows()).toHaveLength(1));
  expect(follows()[0]!.after).toBe("100");
  expect(result.current.feed.conversation?.messages).toHaveLength(2);
  act(() => {
    // Known already, and then new.
    send(event(99, "textDelta", { message_id: "a", delta: "Hel" }));
    send(event(101, "textDelta", { message_id: "a", delta: "lo" }));
    send(event(102, "messageFinished", { message_id: "a", state: "complete", text: "Hello", at }));
  });
  await waitFor(() => expect(result.current.feed.conversation?.last_event_id).toBe("102"));
  expect(result.current.feed.conversation?.messages.at(-1)).toMatchObject({ text: "Hello", state: "complete" });
  // What was finished while somebody listened is announced.
  expect(result.current.feed.said).toEqual({ text: "Hello", n: 1 });
});

test("where something was missed the conversation is read anew", async () => {
  let title = "before";
  const { follows, send } = daemon(() => conversation({ title, last_event_id: title === "before" ? "100" : "500" }));
  const { result } = renderHook(() => useConversation("c"));
  await waitFor(() => expect(follows()).toHaveLength(1));
  title = "after";
  act(() => send({ id: "400", event: "reset", data: {} as never }));
  await waitFor(() => expect(result.current.feed.conversation?.title).toBe("after"));
  await waitFor(() => expect(follows().map(({ after }) => after)).toEqual(["100", "500"]));
});

test("a conversation that was deleted, or never was, is said to be gone", async () => {
  let there = true;
  const { follows, send } = daemon(() => (there ? conversation() : null));
  const { result, unmount } = renderHook(() => useConversation("c"));
  await waitFor(() => expect(follows()).toHaveLength(1));
  act(() => send({ id: "101", event: "conversationDeleted", data: {} as never }));
  await waitFor(() => expect(result.current.feed.deleted).toBe(true));
  unmount();
  there = false;
  const never = renderHook(() => useConversation("d"));
  await waitFor(() => expect(never.result.current.feed.deleted).toBe(true));
});

test("under a new address nothing of the conversation before is shown", async () => {
  const { follows } = daemon(() => conversation());
  const { result, rerender } = renderHook(({ id }: { id: string | null }) => useConversation(id), {
    initialProps: { id: "c" as string | null },
  });
  await waitFor(() => expect(follows()).toHaveLength(1));
  rerender({ id: null });
  expect(result.current.feed.conversation).toBeNull();
});
