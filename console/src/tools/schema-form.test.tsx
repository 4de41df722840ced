import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { expect, test } from "vitest";
import type { JsonSchema } from "../api/mcp";
import { SchemaForm } from "./schema-form";

let current: unknown;

function Form({ schema, initial = {} }: { schema: JsonSchema; initial?: unknown }) {
  const [value, setValue] = useState<unknown>(initial);
  current = value;
  return <SchemaForm schema={schema} value={value} problems={{}} onChange={setValue} />;
}

const schema = (properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema => ({
  type: "object",
  properties,
  required,
});

test("an optional field that is not touched, or emptied again, is not sent", async () => {
  const user = userEvent.setup();
  render(<Form schema={schema({ path: { type: "string" }, n: { type: "integer" } }, ["path"])} />);
  expect(current).toEqual({});
  await user.type(screen.getByLabelText("n"), "12");
  expect(current).toEqual({ n: 12 });
  await user.clear(screen.getByLabelText("n"));
  expect(current).toEqual({});
  await user.type(screen.getByLabelText("path"), "x");
  await user.clear(screen.getByLabelText("path"));
  expect(current).toEqual({ path: "" });
});

test("what is not a number yet stays as it was typed", async () => {
  const user = userEvent.setup();
  render(<Form schema={schema({ n: { type: "number" } })} />);
  const field = screen.getByLabelText<HTMLInputElement>("n");
  await user.type(field, "-1.5e");
  expect(field.value).toBe("-1.5e");
  expect(current).toEqual({ n: "-1.5e" });
  await user.type(field, "3");
  expect(current).toEqual({ n: -1500 });
});

test("lists and objects grow and shrink", async () => {
  const user = userEvent.setup();
  render(
    <Form
      schema={schema({
        tags: { type: "array", items: { type: "string" } },
        at: { type: "object", properties: { x: { type: "boolean" } } },
      })}
    />,
  );
  await user.click(screen.getByRole("button", { name: "Add item to tags" }));
  await user.type(screen.getByLabelText("tags 1"), "a");
  await user.click(screen.getByRole("button", { name: "Add at" }));
  await user.click(screen.getByLabelText("x"));
  expect(current).toEqual({ tags: ["a"], at: { x: true } });
  await user.click(screen.getByRole("button", { name: "Remove tags 1" }));
  await user.click(screen.getByRole("button", { name: "Clear at" }));
  expect(current).toEqual({});
});

test("a choice gives its value, with its type", async () => {
  const user = userEvent.setup();
  render(<Form schema={schema({ level: { enum: [1, 2] } })} />);
  await user.selectOptions(screen.getByLabelText("level"), "2");
  expect(current).toEqual({ level: 2 });
});

test("null is sent only when it is asked for", async () => {
  const user = userEvent.setup();
  render(<Form schema={schema({ note: { type: ["string", "null"] } })} />);
  await user.click(screen.getByLabelText("note is null"));
  expect(current).toEqual({ note: null });
  await user.click(screen.getByLabelText("note is null"));
  expect(current).toEqual({});
});

test("a union is JSON, and text that is none is not sent", async () => {
  const user = userEvent.setup();
  render(<Form schema={schema({ v: { oneOf: [{ type: "string" }, { type: "number" }] } })} />);
  const field = screen.getByLabelText("v");
  await user.click(field);
  await user.paste("[1, ");
  expect(current).toEqual({});
  expect(field.getAttribute("aria-invalid")).toBe("true");
  await user.paste("2]");
  expect(current).toEqual({ v: [1, 2] });
  expect(field.getAttribute("aria-invalid")).toBe("false");
});
