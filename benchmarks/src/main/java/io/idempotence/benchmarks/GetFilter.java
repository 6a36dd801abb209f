package io.idempotence.benchmarks;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import redis.clients.jedis.RedisClient;

/** The least that a replay can cost: one raw GET of a value as long as our record, and the handler instead of the stored response. */
final class GetFilter implements Filter {
    private final RedisClient client;

    GetFilter(RedisClient client) {
        this.client = client;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        String id = ((HttpServletRequest) request).getHeader("Idempotency-Key");
        byte[] key = ("get:" + id).getBytes(StandardCharsets.US_ASCII);
        if (client.get(key) == null) {
            client.set(key, FloorFilter.COMPLETED);
        }
        chain.doFilter(request, response);
    }
}
