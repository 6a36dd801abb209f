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
import javax.net.ssl.SSLHandshakeException;
import javax.net.ssl.SSLPeerUnverifiedException;

/** The meaning of I/O failures for the request. */
public final class IoFailures {
    private IoFailures() {}

    /** Whether no byte of the request was sent: there was no connection, or OkHttp's executor rejected the call. */
    public static boolean certainlyNotSent(IOException e) {
        if (!(e instanceof ConnectException
                || e instanceof UnknownHostException
                || e instanceof NoRouteToHostException
                || isRejected(e))) {
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
