import { expect, test } from "vitest";
import type { JsonSchema } from "../api/mcp";
import { fieldOf, fieldsOf, optionsOf, setAt, startValue } from "./schema-model";

const kind = (schema: JsonSchema, root: JsonSchema = {}) => fieldOf(schema, "x", false, root).kind;

test("each type has a field, and what has none is JSON", () => {
  expect(kind({ type: "string" })).toBe("string");
  expect(kind({ type: "integer" })).toBe("integer");
  expect(kind({ type: "boolean" })).toBe("boolean");
  expect(kind({ enum: ["a", 1] })).toBe("choice");
  expect(kind({ oneOf: [{ const: "a", title: "A" }, { const: "b" }] })).toBe("choice");
  expect(kind({ const: 3 })).toBe("fixed");
  expect(kind({ type: "object", properties: { a: {} } })).toBe("object");
  expect(kind({ type: "array", items: { type: "string" } })).toBe("array");
  expect(kind({ type: "object" })).toBe("json");
  expect(kind({ oneOf: [{ type: "string" }, { type: "number" }] })).toBe("json");
  expect(kind({ type: ["string", "number"] })).toBe("json");
  expect(kind({})).toBe("json");
});

test("null is a box beside the field, in both ways of writing it", () => {
  for (const schema of [{ type: ["string", "null"] }, { anyOf: [{ type: "string" }, { type: "null" }] }]) {
    expect(fieldOf(schema, "x", false, {})).toMatchObject({ kind: "string", nullable: true });
  }
});

test("references are followed, also in circles", () => {
  const root: JsonSchema = {
    $defs: {
      node: { type: "object", title: "Node", properties: { next: { $ref: "#/$defs/node" } } },
      loop: { $ref: "#/$defs/loop" },
    },
  };
  expect(fieldOf({ $ref: "#/$defs/node" }, "x", true, root)).toMatchObject({ kind: "object", label: "Node" });
  expect(fieldOf({ $ref: "#/$defs/node" }, "x", true, root, 9).kind).toBe("json");
  expect(kind({ $ref: "#/$defs/loop" }, root)).toBe("json");
  expect(kind({ $ref: "http://elsewhere" }, root)).toBe("json");
});

test("a field is called by its title, else by its name", () => {
  const fields = fieldsOf(
    { properties: { a: { type: "string", title: "Path" }, b: true as unknown as JsonSchema }, required: ["a"] },
    {},
  );
  expect(fields.map(([, field]) => [field.label, field.required, field.kind])).toEqual([
    ["Path", true, "string"],
    ["b", false, "json"],
  ]);
});

test("choices keep their types", () => {
  expect(optionsOf({ enum: [1, "1", null] }).map(({ value }) => value)).toEqual([1, "1", null]);
});

test("what is taken out is not there, rather than undefined", () => {
  expect(setAt({ a: 1, b: { c: 2 } }, ["b", "c"], undefined)).toEqual({ a: 1, b: {} });
  expect(Object.keys(setAt({ a: 1 }, ["a"], undefined) as object)).toEqual([]);
  expect(setAt({ a: [1, 2] }, ["a", 1], 9)).toEqual({ a: [1, 9] });
  expect(setAt(undefined, ["a", "b"], 1)).toEqual({ a: { b: 1 } });
});

test("a default is copied, not shared", () => {
  const schema = { type: "array", items: { type: "string" }, default: ["a"] };
  const value = startValue(fieldOf(schema, "x", false, {})) as string[];
  value.push("b");
  expect(schema.default).toEqual(["a"]);
});
