package io.idempotence.it.behaviour;

import java.io.IOException;

/**
 * One way in which a server treats its client. The script of all of them runs against an HTTP client with and without the
 * client half; {@link BehaviourServer} plays it over plain sockets.
 */
public enum Behaviour {
    // ---- statuses
    OK(turn -> turn.respond("200 OK", "X-Twice: a", "X-Twice: b")),
    OK_WITHOUT_BODY(turn -> turn.raw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
    OK_WITHOUT_REASON(turn -> turn.respond("200")),
    CREATED_WITH_LOCATION(turn -> turn.respond("201 Created", "Location: /orders/7")),
    ACCEPTED(turn -> turn.respond("202 Accepted")),
    NO_CONTENT(turn -> turn.raw("HTTP/1.1 204 No Content\r\n\r\n")),
    NO_CONTENT_WITH_A_LENGTH(turn -> turn.last("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")),
    RESET_CONTENT(turn -> turn.raw("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n")),
    NOT_MODIFIED(turn -> turn.raw("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n")),
    BAD_REQUEST(turn -> turn.respond("400 Bad Request")),
    FORBIDDEN(turn -> turn.respond("403 Forbidden")),
    NOT_FOUND(turn -> turn.respond("404 Not Found")),
    CONFLICT(turn -> turn.respond("409 Conflict")),
    TOO_LARGE(turn -> turn.respond("413 Content Too Large")),
    MISDIRECTED(turn -> turn.respond("421 Misdirected Request")),
    UNPROCESSABLE(turn -> turn.respond("422 Unprocessable Content")),
    TOO_EARLY(turn -> turn.respond("425 Too Early")),
    TOO_MANY(turn -> turn.respond("429 Too Many Requests", "Retry-After: 0")),
    INTERNAL_ERROR(turn -> turn.respond("500 Internal Server Error")),
    NOT_IMPLEMENTED(turn -> turn.respond("501 Not Implemented")),
    BAD_GATEWAY(turn -> turn.respond("502 Bad Gateway")),
    GATEWAY_TIMEOUT(turn -> turn.respond("504 Gateway Timeout")),
    STATUS_BEYOND_THE_KNOWN(turn -> turn.respond("599 Odd")),

    // ---- what HTTP clients send again by themselves
    REQUEST_TIMEOUT_ONCE(turn -> turn.respond(turn.number() == 1 ? "408 Request Timeout" : "200 OK")),
    REQUEST_TIMEOUT_ALWAYS(turn -> turn.respond("408 Request Timeout")),
    REQUEST_TIMEOUT_AND_CLOSE(turn -> {
        turn.respond(turn.number() == 1 ? "408 Request Timeout" : "200 OK", "Connection: close");
        turn.close();
    }),
    REQUEST_TIMEOUT_WITH_A_WAIT(turn -> turn.respond("408 Request Timeout", "Retry-After: 1")),
    UNAVAILABLE(turn -> turn.respond("503 Service Unavailable")),
    UNAVAILABLE_AND_AT_ONCE_AGAIN(turn -> {
        if (turn.number() == 1) {
            turn.respond("503 Service Unavailable", "Retry-After: 0");
        } else {
            turn.respond("200 OK");
        }
    }),
    UNAVAILABLE_EACH_TIME(turn -> turn.respond("503 Service Unavailable", "Retry-After: 0")),
    UNAVAILABLE_FOR_LONG(turn -> turn.respond("503 Service Unavailable", "Retry-After: 120")),
    UNAVAILABLE_WITH_AN_ABSURD_WAIT(
            turn -> turn.respond("503 Service Unavailable", "Retry-After: 99999999999999999999")),
    DROPPED_AFTER_ONE_CALL(2, turn -> {
        if (turn.number() == 2) {
            turn.close();
        } else {
            turn.respond("200 OK");
        }
    }),
    RESET_AFTER_ONE_CALL(2, turn -> {
        if (turn.number() == 2) {
            turn.reset();
        } else {
            turn.respond("200 OK");
        }
    }),
    CLOSES_EACH_CONNECTION(2, turn -> {
        turn.respond("200 OK", "Connection: close");
        turn.close();
    }),

    // ---- marks of the server half, on a call that has no ID
    REFUSED_FOR_NOW(turn -> turn.respond("409 Conflict", "Idempotency-Refusal: in-progress", "Retry-After-Ms: 1")),
    REFUSED_FOR_GOOD(turn -> turn.respond("400 Bad Request", "Idempotency-Refusal: key-missing")),
    REFUSED_AS_UNKNOWN(turn -> turn.respond("409 Conflict", "Idempotency-Refusal: outcome-unknown")),
    STORAGE_UNAVAILABLE(turn ->
            turn.respond("503 Service Unavailable", "Idempotency-Refusal: storage-unavailable", "Retry-After-Ms: 1")),
    REPLAYED(turn -> turn.respond("500 Internal Server Error", "Idempotent-Replayed: true")),

    // ---- redirects
    MULTIPLE_CHOICES(turn -> turn.redirect("300 Multiple Choices", "/next")),
    MOVED(turn -> turn.redirect("301 Moved Permanently", "/next")),
    FOUND(turn -> turn.redirect("302 Found", "/next")),
    SEE_OTHER(turn -> turn.redirect("303 See Other", "/next")),
    TEMPORARY_REDIRECT(turn -> turn.redirect("307 Temporary Redirect", "/next")),
    PERMANENT_REDIRECT(turn -> turn.redirect("308 Permanent Redirect", "/next")),
    MOVED_ELSEWHERE(turn -> turn.redirect("301 Moved Permanently", turn.otherOrigin() + "/next")),
    FOUND_ELSEWHERE(turn -> turn.redirect("302 Found", turn.otherOrigin() + "/next")),
    SEE_OTHER_ELSEWHERE(turn -> turn.redirect("303 See Other", turn.otherOrigin() + "/next")),
    TEMPORARY_REDIRECT_ELSEWHERE(turn -> turn.redirect("307 Temporary Redirect", turn.otherOrigin() + "/next")),
    PERMANENT_REDIRECT_ELSEWHERE(turn -> turn.redirect("308 Permanent Redirect", turn.otherOrigin() + "/next")),
    REDIRECT_TO_NOBODY(turn -> turn.redirect("307 Temporary Redirect", turn.nobody() + "/next")),
    REDIRECT_TO_TLS(turn -> turn.redirect("302 Found", turn.nobody().replace("http:", "https:") + "/next")),
    REDIRECT_WITHOUT_LOCATION(turn -> turn.respond("302 Found")),
    REDIRECT_TO_ANOTHER_SCHEME(turn -> turn.respond("302 Found", "Location: ftp://127.0.0.1/next")),
    REDIRECT_IN_A_CIRCLE(turn -> turn.respond("302 Found", "Location: /start")),
    REDIRECT_TWICE(turn -> {
        switch (turn.number()) {
            case 1 -> turn.respond("307 Temporary Redirect", "Location: " + turn.otherOrigin() + "/second");
            case 2 -> turn.respond("308 Permanent Redirect", "Location: " + turn.origin() + "/third");
            default -> turn.respond("200 OK");
        }
    }),
    REDIRECT_TO_AN_ERROR(turn -> {
        if (turn.number() == 1) {
            turn.respond("303 See Other", "Location: /next");
        } else {
            turn.respond("503 Service Unavailable");
        }
    }),

    // ---- logins and cookies
    CHALLENGE(turn -> {
        if (turn.request().header("Authorization") == null) {
            turn.respond("401 Unauthorized", "WWW-Authenticate: Basic realm=\"orders\"");
        } else {
            turn.respond("200 OK");
        }
    }),
    CHALLENGE_ALWAYS(turn -> turn.respond("401 Unauthorized", "WWW-Authenticate: Basic realm=\"orders\"")),
    UNAUTHORIZED_WITHOUT_CHALLENGE(turn -> turn.respond("401 Unauthorized")),
    COOKIES(2, turn -> turn.respond("200 OK", "Set-Cookie: session=1; Path=/", "Set-Cookie: seen=" + turn.number())),

    // ---- framing
    CHUNKED(turn -> turn.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")),
    CHUNKED_WITH_TRAILERS(
            turn -> turn.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-End: 1\r\n\r\n")),
    BODY_UNTIL_CLOSE(turn -> turn.last("HTTP/1.1 200 OK\r\n\r\nok")),
    HTTP_1_0(turn -> turn.last("HTTP/1.0 200 OK\r\n\r\nok")),
    CONTINUE_FIRST(turn -> turn.raw("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")),
    PROCESSING_FIRST(turn -> turn.raw("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")),
    EARLY_HINTS_FIRST(turn -> turn.raw(
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")),
    GZIP(turn -> turn.gzip(0)),
    GZIP_TRUNCATED(turn -> turn.gzip(8)),
    GZIP_THAT_IS_NONE(turn -> turn.respond("200 OK", "Content-Encoding: gzip")),
    LARGE_RESPONSE(turn -> turn.raw("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + "r".repeat(3_000_000))),
    LARGE_REQUEST(Kind.LARGE, turn -> turn.respond("200 OK")),
    LARGE_REQUEST_AND_DROP(Kind.LARGE, Turn::close),
    RESPONSE_BEFORE_THE_BODY_WAS_READ(Kind.LARGE, new Server() {
        @Override
        public void respond(Turn turn) throws IOException {
            turn.respond("400 Bad Request", "Connection: close");
            turn.readBody();
            turn.close();
        }

        @Override
        public boolean readsBody() {
            return false;
        }
    }),

    // ---- interrupted responses
    NOBODY_LISTENS(turn -> {
        throw new IllegalStateException("nobody listens there");
    }),
    CLOSED_WITHOUT_A_RESPONSE(Turn::close),
    RESET_WITHOUT_A_RESPONSE(Turn::reset),
    STATUS_LINE_CUT(turn -> turn.last("HTTP/1.1 2")),
    STATUS_LINE_WITHOUT_END(turn -> turn.last("HTTP/1.1 200 OK")),
    HEADERS_CUT(turn -> turn.last("HTTP/1.1 200 OK\r\nContent-Le")),
    HEADERS_WITHOUT_END(turn -> turn.last("HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n")),
    BODY_CUT(turn -> turn.last("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf")),
    ERROR_BODY_CUT(turn -> turn.last("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 20\r\n\r\nhalf")),
    CHUNK_CUT(turn -> turn.last("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nhalf")),
    LAST_CHUNK_MISSING(turn -> turn.last("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")),
    CHUNK_WITHOUT_SIZE(turn -> turn.last("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n")),
    NO_HTTP(turn -> turn.last("SSH-2.0-OpenSSH_9.2\r\n\r\n")),
    STATUS_THAT_IS_NO_NUMBER(turn -> turn.last("HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n")),
    HEADER_WITHOUT_COLON(turn -> turn.last("HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\nok")),
    LENGTH_THAT_IS_NO_NUMBER(turn -> turn.last("HTTP/1.1 200 OK\r\nContent-Length: some\r\n\r\nok")),

    // ---- what takes too long: the client's read timeout is short
    NO_RESPONSE_IN_TIME(Kind.LATE, Turn::hang),
    STATUS_LINE_IN_TIME_ONLY(Kind.LATE, turn -> {
        turn.raw("HTTP/1.1 200 OK\r\n");
        turn.hang();
    }),
    HALF_A_BODY_IN_TIME(Kind.LATE, turn -> {
        turn.raw("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf");
        turn.hang();
    }),
    NO_RESPONSE_IN_TIME_ON_A_USED_CONNECTION(2, Kind.LATE, turn -> {
        if (turn.number() == 2) {
            turn.hang();
        } else {
            turn.respond("200 OK");
        }
    });

    /** A server that treats one request. */
    @FunctionalInterface
    public interface Server {
        void respond(Turn turn) throws IOException;

        default boolean readsBody() {
            return true;
        }
    }

    private enum Kind {
        PLAIN,
        LARGE,
        LATE
    }

    private final int calls;
    private final Kind kind;
    private final Server server;

    Behaviour(Server server) {
        this(1, Kind.PLAIN, server);
    }

    Behaviour(int calls, Server server) {
        this(calls, Kind.PLAIN, server);
    }

    Behaviour(Kind kind, Server server) {
        this(1, kind, server);
    }

    Behaviour(int calls, Kind kind, Server server) {
        this.calls = calls;
        this.kind = kind;
        this.server = server;
    }

    /** How many calls the client makes, one after another, over one connection pool. */
    public int calls() {
        return calls;
    }

    /** The length of the body of a request that has one. */
    public int requestBytes() {
        return kind == Kind.LARGE ? 2_000_000 : 20;
    }

    /** True if it is about a read timeout of the client, which is to be short; in all others a long one keeps a slow machine out. */
    public boolean isLate() {
        return kind == Kind.LATE;
    }

    /** False if the address is one where nobody listens. */
    boolean listens() {
        return this != NOBODY_LISTENS;
    }

    Server server() {
        return server;
    }
}
