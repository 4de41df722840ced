import { expect, test } from "vitest";
import { groupOf } from "./mime";
import { searchResources } from "./resources-tab";
import { expand, variablesOf } from "./uri-template";

test.each([
  ["text/markdown", "text"],
  ["application/json; charset=utf-8", "text"],
  ["application/ld+json", "text"],
  ["image/png", "image"],
  ["application/pdf", "other"],
  [undefined, "other"],
])("%s is %s", (type, group) => {
  // covers: MGR-51
  expect(groupOf(type)).toBe(group);
});

test("search looks at address and name, the filter at the type", () => {
  // covers: MGR-50
  const resources = [
    { uri: "file:///README.md", name: "Read me", mimeType: "text/markdown" },
    { uri: "file:///logo.png", mimeType: "image/png" },
  ];
  expect(searchResources(resources, "readme", "all").map(({ uri }) => uri)).toEqual(["file:///README.md"]);
  expect(searchResources(resources, "file", "image").map(({ uri }) => uri)).toEqual(["file:///logo.png"]);
  expect(searchResources(resources, "read me", "text")).toHaveLength(1);
});

test("an address template is filled in", () => {
  expect(variablesOf("db://{table}/{+path}{?q,limit}")).toEqual(["table", "path", "q", "limit"]);
  expect(expand("db://{table}/{+path}{?q,limit}", { table: "a/b", path: "x/y", limit: "3" })).toBe(
    "db://a%2Fb/x/y?limit=3",
  );
});
