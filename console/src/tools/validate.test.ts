import i18next from "i18next";
import { expect, test } from "vitest";
import { validate } from "./validate";

const t = i18next.t;
const schema = {
  type: "object",
  properties: {
    a: { type: "integer", minimum: 3 },
    b: { type: "object", properties: { c: { type: "string", maxLength: 2 } }, required: ["c"] },
    l: { type: "array", items: { enum: ["x"] } },
    s: { type: "string", minLength: 1 },
  },
  required: ["a"],
  additionalProperties: false,
};

test("what is right has no problems", () => {
  expect(validate(schema, { a: 3, b: { c: "ok" }, l: ["x"] }, t)).toEqual({});
});

test("each problem is told where it is", () => {
  expect(validate(schema, {}, t)).toEqual({ "/a": "is required" });
  expect(validate(schema, { a: 1 }, t)).toEqual({ "/a": "must be at least 3" });
  expect(validate(schema, { a: "x" }, t)).toEqual({ "/a": "must be of type integer" });
  expect(validate(schema, { a: 3, b: {} }, t)).toEqual({ "/b/c": "is required" });
  expect(validate(schema, { a: 3, b: { c: "long" } }, t)).toEqual({ "/b/c": "must have at most 2 characters" });
  expect(validate(schema, { a: 3, s: "" }, t)).toEqual({ "/s": "must have at least 1 character" });
  expect(validate(schema, { a: 3, l: ["x", "y"] }, t)).toEqual({ "/l/1": "must be one of the choices" });
  expect(validate(schema, { a: 3, z: 1 }, t)).toEqual({ "/z": "is not known to this tool" });
});

test("a schema that cannot be read forbids nothing", () => {
  expect(validate({ $ref: "#/nowhere" }, { a: 1 }, t)).toEqual({});
});
