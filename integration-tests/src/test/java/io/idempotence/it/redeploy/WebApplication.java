package io.idempotence.it.redeploy;

import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletContextEvent;
import jakarta.servlet.ServletContextListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRegistration;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** An application that protects its only servlet, calls another, and closes what it opened. Its classes are loaded anew for each deployment. */
public final class WebApplication implements ServletContextListener {
    /** The calls that it makes to another application. */
    interface Calls extends AutoCloseable {
        String make() throws Exception;

        @Override
        void close();
    }

    private Idempotence idempotence;
    private Calls calls;

    @Override
    public void contextInitialized(ServletContextEvent event) {
        ServletContext context = event.getServletContext();
        idempotence = Idempotence.builder(RedisIdempotenceStorage.builder(context.getInitParameter("redis"))
                        .timeouts(Duration.ofSeconds(20), Duration.ofSeconds(20))
                        .build())
                .namespace(context.getInitParameter("namespace"))
                .build();
        IdempotenceFilter.builder(idempotence)
                .maxWait(Duration.ofMinutes(1))
                .build()
                .install(context);
        String provider = context.getInitParameter("provider");
        calls = context.getInitParameter("client").equals("okhttp")
                ? new OkHttpCalls(provider)
                : new FeignCalls(provider);
        ServletRegistration.Dynamic servlet = context.addServlet("handler", new Handler(calls));
        servlet.setAsyncSupported(true);
        servlet.addMapping("/*");
    }

    @Override
    public void contextDestroyed(ServletContextEvent event) {
        calls.close();
        idempotence.close();
    }

    private static final class Handler extends HttpServlet {
        private static final long serialVersionUID = 1L;

        private final transient Calls calls;

        private Handler(Calls calls) {
            this.calls = calls;
        }

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                throws IOException, ServletException {
            try {
                response.getWriter().write(calls.make());
            } catch (IOException | RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new ServletException(e);
            }
        }

        /** Takes long enough for a duplicate to wait. */
        @Override
        protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
            response.sendError(422, "no such account");
        }
    }
}
