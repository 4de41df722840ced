import { expect, test } from "vitest";
import { bodyOf } from "../test/stream";
import { type SseMessage, chunksOf, readSse } from "./sse";

async function read(pieces: string[]): Promise<SseMessage[]> {
  const messages: SseMessage[] = [];
  for await (const message of readSse(chunksOf(bodyOf(pieces)))) messages.push(message);
  return messages;
}

test("a message is the same however it is cut into pieces", async () => {
  const text = ': hello\r\n\r\nid: 7\r\nevent: mcpServerStatusChanged\r\ndata: {"a":"é"}\r\n\r\ndata: x\ndata: y\n\n';
  const whole = await read([text]);
  expect(whole).toEqual([
    { id: "7", event: "mcpServerStatusChanged", data: '{"a":"é"}' },
    { id: "7", event: "message", data: "x\ny" },
  ]);
  for (let at = 1; at < text.length; at += 1) expect(await read([text.slice(0, at), text.slice(at)])).toEqual(whole);
});

test("what is cut off at the end is not a message", async () => {
  expect(await read(["data: a\n\ndata: b\n"])).toEqual([{ id: null, event: "message", data: "a" }]);
});

test("comments and events without data are no messages", async () => {
  expect(await read([": keep-alive\n\nevent: x\n\nretry: 5\n\n"])).toEqual([]);
});

test("a line without an end is given up", async () => {
  await expect(read(["data: ", "x".repeat(5_000_000)])).rejects.toThrow("too long");
});
