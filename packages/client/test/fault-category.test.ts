import { verifies } from "@moor/testkit";
import { expect } from "vitest";
import { faultCategory } from "../src/http/fault-category.ts";

function error(code: string): Error {
  return Object.assign(new Error("getaddrinfo ENOTFOUND host-marker.example"), {
    code,
    hostname: "host-marker",
  });
}

verifies("R8", "an error is told by its category alone", () => {
  expect(faultCategory(error("ENOTFOUND"))).toBe("dns");
  expect(faultCategory(error("ECONNREFUSED"))).toBe("refused");
  expect(faultCategory(error("ECONNRESET"))).toBe("reset");
  expect(faultCategory(error("UND_ERR_SOCKET"))).toBe("reset");
  expect(faultCategory(error("ERR_TLS_CERT_ALTNAME_INVALID"))).toBe("tls");
  expect(faultCategory(error("ERR_SSL_WRONG_VERSION_NUMBER"))).toBe("tls");
  expect(faultCategory(error("SELF_SIGNED_CERT_IN_CHAIN"))).toBe("tls");
  expect(faultCategory(error("UND_ERR_CONNECT_TIMEOUT"))).toBe("timeout");
  expect(faultCategory(error("HPE_INVALID_CONSTANT"))).toBe("protocol");
  expect(faultCategory(new AggregateError([error("EHOSTUNREACH"), error("ECONNREFUSED")]))).toBe("refused");
  expect(faultCategory(error("SOMETHING_NEW"))).toBe("other");
  expect(faultCategory("host-marker")).toBe("other");
});
