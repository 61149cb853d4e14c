// An operator listener that answers as a test says and remembers what it was asked.

import { startHttpHost } from "@moor/testkit";
import { onTestFinished, vi } from "vitest";

/** A request as it came. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly actor: string | undefined;
}

/** Status and JSON; `undefined` cuts the connection. */
export type OperatorReply = readonly [status: number, json: unknown] | undefined;

/** A listener that takes the token of the environment. */
export interface FakeOperator {
  readonly asked: readonly Asked[];
  /** Arguments that name it. */
  readonly args: readonly string[];
}

/** Starts one for the length of the test; the environment's token opens it. */
export async function startFakeOperator(answer: (asked: Asked) => OperatorReply): Promise<FakeOperator> {
  const asked: Asked[] = [];
  const host = await startHttpHost((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const one: Asked = {
        method: request.method ?? "",
        path: request.url ?? "",
        body: text === "" ? undefined : JSON.parse(text),
        actor: request.headers["x-moor-actor"] as string | undefined,
      };
      asked.push(one);
      const reply = answer(one);
      if (reply === undefined) return void request.socket.destroy();
      response.writeHead(reply[0], { "Content-Type": "application/json" }).end(JSON.stringify(reply[1]));
    });
  });
  vi.stubEnv("MOOR_OPERATOR_TOKEN", "token");
  vi.stubEnv("MOOR_ACTOR", "eve");
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await host.close();
  });
  return { asked, args: ["--operator", host.origin] };
}

/** An error of the operator API. */
export function refusal(
  status: number,
  code: string,
  message = code,
  data?: Readonly<Record<string, unknown>>,
): OperatorReply {
  return [status, { error: { code, message, type: "x", ...(data === undefined ? {} : { data }) } }];
}
