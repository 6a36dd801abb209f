package io.idempotence.server.redis;

/**
 * A counter of the commands, or of the replies, in one direction of a connection to Redis (RESP 2 and 3), wherever the network cuts the
 * bytes.
 */
final class RespValues {
    private final StringBuilder line = new StringBuilder();
    /** How many values are needed still until the outermost one is whole. */
    private long missing = 1;

    private long bytesToSkip;
    private boolean push;

    /** How many values end in these bytes. What a server pushes unasked is none. */
    int add(byte[] bytes, int length) {
        int whole = 0;
        for (int i = 0; i < length; i++) {
            if (bytesToSkip > 0) {
                bytesToSkip--;
            } else if (bytes[i] == '\n') {
                open(line.charAt(0), line.substring(1, line.length() - 1));
                line.setLength(0);
            } else {
                line.append((char) bytes[i]);
            }
            if (missing == 0 && bytesToSkip == 0) {
                whole += push ? 0 : 1;
                missing = 1;
                push = false;
            }
        }
        return whole;
    }

    private void open(char type, String rest) {
        push |= type == '>';
        missing += switch (type) {
            case '*', '~', '>' -> Math.max(0, Long.parseLong(rest)) - 1;
            case '%' -> 2 * Long.parseLong(rest) - 1;
            case '|' -> 2 * Long.parseLong(rest);
            case '$', '=', '!' -> {
                long bytes = Long.parseLong(rest);
                bytesToSkip = bytes < 0 ? 0 : bytes + 2;
                yield -1;
            }
            default -> -1;
        };
    }
}
