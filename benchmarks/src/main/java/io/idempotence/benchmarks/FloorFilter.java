package io.idempotence.benchmarks;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.params.SetParams;

/**
 * The least that an ID in Redis can cost: a raw SET NX PX before the handler and a raw SET after it, with values as long as ours. No
 * fingerprint, no owner, no held response: it protects nothing.
 */
final class FloorFilter implements Filter {
    private static final long RETENTION_MILLIS = 86_400_000;
    static final byte[] CLAIMED = new byte[62];
    static final byte[] COMPLETED = new byte[99];

    private final RedisClient client;

    FloorFilter(RedisClient client) {
        this.client = client;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        String id = ((HttpServletRequest) request).getHeader("Idempotency-Key");
        byte[] key = ("floor:" + id).getBytes(StandardCharsets.US_ASCII);
        if (client.set(key, CLAIMED, new SetParams().nx().px(RETENTION_MILLIS)) == null) {
            ((HttpServletResponse) response).setStatus(HttpServletResponse.SC_CONFLICT);
            return;
        }
        chain.doFilter(request, response);
        client.set(key, COMPLETED, new SetParams().px(RETENTION_MILLIS));
    }
}
