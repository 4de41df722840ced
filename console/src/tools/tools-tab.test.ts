import { expect, test } from "vitest";
import { searchTools } from "./tools-tab";

test("search looks at names and descriptions", () => {
  // covers: MGR-38
  const tools = [
    { name: "read_file", description: "Reads" },
    { name: "write", description: "Writes a FILE" },
    { name: "other" },
  ];
  expect(searchTools(tools, "file").map(({ name }) => name)).toEqual(["read_file", "write"]);
  expect(searchTools(tools, "")).toBe(tools);
  expect(searchTools(tools, "nothing")).toEqual([]);
});
