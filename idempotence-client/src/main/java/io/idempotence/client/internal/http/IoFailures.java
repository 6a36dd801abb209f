package io.idempotence.client.internal.http;

import io.idempotence.internal.Causes;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.MalformedURLException;
import java.net.NoRouteToHostException;
import java.net.ProtocolException;
import java.net.UnknownHostException;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateException;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.CancellationException;
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.jspecify.annotations.Nullable;

/** The meaning of I/O failures for the request. */
public final class IoFailures {
    private static final String HC5 = "org.apache.hc.client5.http.impl.classic.";
    private static final String HC5_CONNECTION = HC5 + "InternalExecRuntime";

    /** Each is thrown before there is a connection. By name: Apache HttpClient need not be there, nor the module of java.net.http. */
    private static final Set<String> WITHOUT_CONNECTION = Set.of(
            "java.net.http.HttpConnectTimeoutException",
            "org.apache.hc.client5.http.ConnectTimeoutException",
            "org.apache.hc.core5.http.ConnectionRequestTimeoutException");

    /** What a blocking client calls to get a connection, and to make it one of TLS. Apache HttpClient checks there if it was aborted. */
    private static final Set<String> CONNECTING = Set.of(
            "java.net.Socket#connect",
            "sun.security.ssl.SSLSocketImpl#startHandshake",
            HC5_CONNECTION + "#acquireEndpoint",
            HC5_CONNECTION + "#connectEndpoint");

    /** Where HttpClient checks that it still has its connection, before it opens it or sends anything over it. */
    private static final Set<String> USING = Set.of("connectEndpoint", "execute");

    /** HttpURLConnection connects again there if its connection was closed at the deadline: the request may have left over that one. */
    private static final Set<String> CONNECTING_AGAIN =
            Set.of("sun.net.www.protocol.http.HttpURLConnection#getInputStream");

    private IoFailures() {}

    /**
     * Whether no byte of the request was sent: there was no connection, the request was aborted before it had one, or OkHttp's executor
     * rejected the call.
     */
    public static boolean certainlyNotSent(IOException e) {
        if (!(e instanceof ConnectException
                        || e instanceof UnknownHostException
                        || e instanceof NoRouteToHostException
                        || WITHOUT_CONNECTION.contains(e.getClass().getName())
                        || e instanceof AbortedInTime
                        || isRejected(e)
                        || isThrownIn(CONNECTING, e))
                || isThrownIn(CONNECTING_AGAIN, e)) {
            return false;
        }
        // OkHttp repeats requests by itself and throws the last failure with the earlier ones suppressed.
        for (Throwable earlier : e.getSuppressed()) {
            if (earlier instanceof IOException io && !certainlyNotSent(io)) {
                return false;
            }
        }
        return true;
    }

    /** A connect timeout has the class of any other timeout, and the exception of a closed socket does not show which phase it ended. */
    private static boolean isThrownIn(Set<String> methods, Throwable e) {
        for (StackTraceElement frame : e.getStackTrace()) {
            if (methods.contains(frame.getClassName() + "#" + frame.getMethodName())) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns the failure of a request that ended before it was sent. If a request is aborted, Apache HttpClient throws a
     * {@link CancellationException} while it waits for a connection of the pool, and an {@link IllegalStateException} when it wants to use a
     * connection that the abort took from it.
     *
     * @return an I/O failure that is {@linkplain #certainlyNotSent certainly not sent}, or null if this is something else
     */
    public static @Nullable IOException ofAbortedRequest(Throwable e) {
        boolean waited = e instanceof CancellationException && isThrownIn(CONNECTING, e);
        return waited || (e instanceof IllegalStateException && lostItsConnection(e)) ? new AbortedInTime(e) : null;
    }

    private static boolean lostItsConnection(Throwable e) {
        StackTraceElement[] trace = e.getStackTrace();
        return trace.length > 1
                && trace[0].getClassName().equals(HC5_CONNECTION)
                && trace[0].getMethodName().equals("ensureValid")
                && USING.contains(trace[1].getMethodName())
                && isOnlyOfHttpClient(trace);
    }

    /** Whether all steps are HttpClient's own. After an interceptor has sent the request, it has no connection either. */
    private static boolean isOnlyOfHttpClient(StackTraceElement[] trace) {
        return Arrays.stream(trace)
                .takeWhile(frame -> !frame.getMethodName().equals("doExecute"))
                .allMatch(frame -> frame.getClassName().startsWith(HC5));
    }

    /** A request that was aborted before any of it was sent. */
    private static final class AbortedInTime extends InterruptedIOException {
        private static final long serialVersionUID = 1L;

        AbortedInTime(Throwable cause) {
            super("the request was aborted before it was sent");
            initCause(cause);
        }
    }

    private static boolean isRejected(IOException e) {
        // There is no cause if the executor was shut down before.
        return e.getClass() == InterruptedIOException.class && "executor rejected".equals(e.getMessage());
    }

    /** Whether HttpURLConnection, and so Feign's default client, refused a method such as PATCH. It does so before it connects. */
    private static boolean isUnknownMethod(IOException e) {
        return e instanceof ProtocolException
                && e.getMessage() != null
                && e.getMessage().startsWith("Invalid HTTP method");
    }

    /**
     * Whether a retry cannot help and nothing was sent: the peer's certificate is not trusted, the method cannot be sent, or the address is
     * malformed.
     */
    public static boolean isHopeless(IOException e) {
        if (e instanceof SSLPeerUnverifiedException || e instanceof MalformedURLException || isUnknownMethod(e)) {
            return true;
        }
        return e instanceof SSLHandshakeException
                && (Causes.has(e, CertificateException.class) || Causes.has(e, CertPathValidatorException.class));
    }
}
