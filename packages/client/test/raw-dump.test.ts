import { createRawDump, type HeaderLine } from "@moor/client";
import { verifies } from "@moor/testkit";
import { expect } from "vitest";
import { answer, correction } from "./fake-control-plane.ts";

async function dumpOf(
  answered: ReturnType<typeof answer>,
  headers: readonly HeaderLine[] = [],
): Promise<string> {
  const written: string[] = [];
  const dump = createRawDump((text) => written.push(text));
  const request = { method: "POST", path: "/x", headers, body: Buffer.from('{"a":1}') } as const;
  await dump.exchange("service", request, Promise.resolve(answered));
  return written.join("");
}

verifies(
  "T25",
  "a dump shows an exchange with its secrets masked, every line marked with peer and direction",
  async () => {
    const text = await dumpOf(answer(200, "done\nwell", [["Set-Cookie", "marker"]]), [
      ["Authorization", "Bearer marker"],
      ["x-tunnel-shard-token", "marker"],
      ["X-Shown", "yes"],
    ]);
    expect(text.trimEnd().split("\n")).toEqual([
      "service > POST /x",
      "service > Authorization: [secret]",
      "service > x-tunnel-shard-token: [secret]",
      "service > X-Shown: yes",
      'service > {"a":1}',
      "service < 200",
      "service < Set-Cookie: [secret]",
      "service < done",
      "service < well",
    ]);
  },
);

verifies(
  "R8",
  "a dump never holds the body or token of a correction, even one that answers a response",
  async () => {
    const text = await dumpOf(correction("token-marker", 424_242));
    expect(text).not.toMatch(/token-marker|424242|wrong_cluster/);
    expect(text).toContain("service < 409");
    const bare = answer(500, '{"error":{"code":"wrong_cluster","message":"marker"}}');
    expect(await dumpOf(bare)).not.toMatch(/marker|wrong_cluster/);
  },
);
