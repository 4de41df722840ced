// In every test file: the browser ends with the file's last test.
import { afterAll } from "vitest";
import { closeBrowser } from "./browser";

afterAll(closeBrowser);
