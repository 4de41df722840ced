import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { decodeNamedCharacterReference } from "./character-names";
import { Markdown, safeUrl } from "./markdown";

const draw = (text: string) => render(<Markdown text={text} />).container;

test("HTML in a text stays text", () => {
  const page = draw('Hello <script>alert(1)</script> <img src="x" onerror="alert(1)"> <b>bold</b>');
  expect(page.querySelector("script, img, b")).toBeNull();
  expect(page.textContent).toContain("<script>alert(1)</script>");
  expect(page.textContent).toContain('onerror="alert(1)"');
});

test("links open beside the console, and cannot run anything", () => {
  draw("[docs](https://example.org/a) [bad](javascript:alert(1)) https://example.org/plain");
  const links = screen.getAllByRole("link");
  expect(links.map((link) => link.getAttribute("href"))).toEqual([
    "https://example.org/a",
    "https://example.org/plain",
  ]);
  for (const link of links) {
    expect(link.getAttribute("rel")).toContain("noopener");
    expect(link.getAttribute("target")).toBe("_blank");
  }
  expect(screen.getByText(/bad/)).toBeTruthy();
  expect(["/settings", "data:text/html,x", "JaVaScRiPt:1", "", undefined].map(safeUrl)).toEqual(Array(5).fill(null));
  expect(safeUrl("mailto:a@b.example")).toBe("mailto:a@b.example");
});

test("nothing is loaded from elsewhere: a picture is a link", () => {
  const page = draw("![secret](https://example.org/?leak=1)");
  expect(page.querySelector("img")).toBeNull();
  expect(screen.getByRole("link", { name: "secret" })).toBeTruthy();
});

test("tables, code and lists of tasks are drawn; headings stand below the message's", () => {
  draw("# Big\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nlet x = 1;\n```\n\n- [x] ready\n- [ ] open");
  expect(screen.getByRole("heading", { level: 3, name: "Big" })).toBeTruthy();
  expect(screen.getByRole("table")).toBeTruthy();
  expect(screen.getByText("let x = 1;")).toBeTruthy();
  expect(screen.getByRole("checkbox", { name: "done" })).toBeTruthy();
});

test("lists, links by name, footnotes and quotes are drawn", () => {
  const page = draw(
    "3. three\n4. four\n\n- one\n\n  part\n\n> quoted *soft* ~~gone~~\n\n[site][s] and a note[^1]\n\n[s]: https://example.org/\n[^1]: the note",
  );
  expect(page.querySelector("ol")?.getAttribute("start")).toBe("3");
  expect(page.querySelectorAll("ol > li > p")).toHaveLength(0);
  expect(page.querySelectorAll("ul > li > p")).toHaveLength(2);
  expect(page.querySelector("blockquote em")?.textContent).toBe("soft");
  expect(page.querySelector("del")?.textContent).toBe("gone");
  expect(screen.getByRole("link", { name: "site" }).getAttribute("href")).toBe("https://example.org/");
  expect(page.textContent).toContain("[1]");
  expect(page.textContent).toContain("the note");
});

test("text without end of nesting is no danger", () => {
  const deep = `${"> ".repeat(50_000)}deep`;
  expect(draw(deep).textContent).toBe(deep);
  expect(draw(`${"> ".repeat(100)}less`).querySelectorAll("blockquote").length).toBeLessThanOrEqual(61);
});

test("named characters are known without asking the browser to read HTML", () => {
  const names = ["amp", "lt", "copy", "yuml", "Alpha", "omega", "rho", "sigma", "emsp", "rarr", "hellip", "szlig"];
  expect(names.map(decodeNamedCharacterReference).join("|")).toBe("&|<|©|ÿ|Α|ω|ρ|σ|\u2003|→|…|ß");
  expect(decodeNamedCharacterReference("nosuch")).toBe(false);
  expect(draw("a &amp; b &lt;b&gt; &copy; &nosuch;").textContent).toBe("a & b <b> © &nosuch;");
});
