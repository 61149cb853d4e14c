import { createHash } from "node:crypto";
import { describe, expect } from "vitest";
import { linkHelloOkBytes, linkProofBytes, serviceKeyId } from "@moor/protocol";
import { verifies } from "@moor/testkit";

const parts = { host: "eu-1.cloud.ftw.energy", home: "villa", clientNonce: "c".repeat(43) };

describe("signed bytes", () => {
  verifies("L29", "a proof is five lines without a last line feed", () => {
    const bytes = linkProofBytes({ ...parts, serviceNonce: "s".repeat(43) });
    expect(Buffer.from(bytes).toString()).toBe(
      `moor-link-proof-v1\neu-1.cloud.ftw.energy\nvilla\n${"c".repeat(43)}\n${"s".repeat(43)}`,
    );
  });

  verifies("L29", "a hello_ok is five lines, six with a next key", () => {
    const lines = ["moor-link-hello-ok-v1", "eu-1.cloud.ftw.energy", "villa", "c".repeat(43), "17"];
    expect(Buffer.from(linkHelloOkBytes({ ...parts, generation: "17" })).toString()).toBe(lines.join("\n"));
    const nextKey = "k".repeat(43);
    expect(Buffer.from(linkHelloOkBytes({ ...parts, generation: "17", nextKey })).toString()).toBe(
      [...lines, nextKey].join("\n"),
    );
  });

  verifies("L29", "no part can bring a line of its own", () => {
    expect(() => linkHelloOkBytes({ ...parts, host: "a\nb", generation: "17" })).toThrow(RangeError);
    expect(() => linkProofBytes({ ...parts, serviceNonce: "a\n" })).toThrow(RangeError);
  });

  verifies("L28", "a service key's id is the start of its hash", () => {
    const sha256 = createHash("sha256").update(Buffer.alloc(32, 7)).digest();
    expect(serviceKeyId(sha256)).toBe(sha256.toString("base64url").slice(0, 16));
  });
});
