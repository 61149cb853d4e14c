// What the CLI tests do to a node besides running commands.

import type { MoorDev } from "@moor/testkit";

/** Creates a tunnel through the operator API; gives its id. */
export async function postTunnel(dev: Pick<MoorDev, "operatorUrl" | "operatorToken">): Promise<string> {
  const response = await fetch(`${dev.operatorUrl}/v1/tunnels`, {
    method: "POST",
    headers: { Authorization: `Bearer ${dev.operatorToken}` },
  });
  const { id } = (await response.json()) as { readonly id: string };
  return id;
}
