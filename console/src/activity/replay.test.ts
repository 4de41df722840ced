import { expect, test } from "vitest";
import type { RecordedCall } from "../api/schema";
import { editableOf } from "./replay";

const flight = (text: string, truncated = false) =>
  ({ request: { text, bytes: text.length, truncated, redacted: false } }) as RecordedCall;

test("of a tool's call the arguments are edited, and the rest is sent as it was", () => {
  const sent = '{"id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},"_meta":{"k":"v"}}}';
  const editable = editableOf(flight(sent))!;
  expect(editable.part).toBe("arguments");
  expect(editable.text).toBe('{\n  "a": 1\n}');
  // As it was typed: a number that the page could not hold stays what it is.
  expect(editable.body('{"n":12345678901234567890}')).toBe(
    '{"params":{"name":"echo","_meta":{"k":"v"},"arguments":{"n":12345678901234567890}}}',
  );
});

test("a call without arguments begins with none", () => {
  expect(editableOf(flight('{"method":"tools/call","params":{"name":"now"}}'))!.text).toBe("{}");
});

test("of other requests all params are edited", () => {
  const editable = editableOf(flight('{"method":"resources/read","params":{"uri":"file:///a"}}'))!;
  expect(editable.part).toBe("params");
  expect(editable.body('{"uri":"file:///b"}')).toBe('{"params":{"uri":"file:///b"}}');
});

test("a request that is not kept whole is not edited", () => {
  expect(editableOf(flight('{"method":"tools/call","params":{"na', true))).toBeNull();
  expect(editableOf(flight("not JSON"))).toBeNull();
});
