// What every component test has: English texts, and a clean page afterwards.
import { cleanup, configure } from "@testing-library/react";
import { afterEach, beforeAll } from "vitest";
import { startLanguage } from "../i18n";

configure({ asyncUtilTimeout: 30_000 });
beforeAll(() => startLanguage("en"));
afterEach(cleanup);
