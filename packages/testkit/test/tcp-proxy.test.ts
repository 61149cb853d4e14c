import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { startTcpProxy, until, type TcpProxy } from "@moor/testkit";

const echo = createServer((socket) => socket.on("error", () => {}).pipe(socket));
let proxy: TcpProxy | undefined;
const sockets: Socket[] = [];

async function dial(): Promise<Socket> {
  if (!echo.listening) await once(echo.listen(0, "127.0.0.1"), "listening");
  proxy ??= await startTcpProxy({ port: (echo.address() as AddressInfo).port });
  const socket = connect(proxy.port, "127.0.0.1");
  sockets.push(socket);
  socket.setEncoding("utf8");
  await once(socket, "connect");
  socket.write("first");
  expect((await once(socket, "data"))[0]).toBe("first");
  return socket;
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await proxy?.close();
  proxy = undefined;
  await new Promise((resolve) => echo.close(resolve));
});

test("a frozen wire holds bytes back and delivers them when it flows again", async () => {
  const socket = await dial();
  const seen: string[] = [];
  socket.on("data", (chunk) => seen.push(String(chunk)));
  proxy?.setWire("frozen");
  socket.write("second");
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen).toEqual([]);
  proxy?.setWire("flowing");
  await until(() => seen.includes("second"), "the held bytes");
});

test("a cut ends connections in order, a reset tears them", async () => {
  const cut = await dial();
  proxy?.cut();
  await once(cut, "close");
  const torn = await dial();
  proxy?.reset();
  const [error] = (await once(torn, "error")) as [NodeJS.ErrnoException];
  expect(error.code).toBe("ECONNRESET");
  expect(proxy?.acceptedCount).toBe(2);
});
