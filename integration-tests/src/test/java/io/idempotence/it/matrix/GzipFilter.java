package io.idempotence.it.matrix;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.util.zip.GZIPOutputStream;
import org.springframework.web.util.WebUtils;

/**
 * A filter that compresses every response body. The compressed stream ends with the last dispatch, or when the handler closes it; an ASYNC
 * dispatch that arrives with the compressing response goes on with it.
 */
final class GzipFilter implements Filter {
    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (!"gzip".equals(((HttpServletRequest) request).getHeader("Accept-Encoding"))) {
            chain.doFilter(request, response);
            return;
        }
        GzipResponse compressing = WebUtils.getNativeResponse(response, GzipResponse.class);
        if (compressing != null) {
            chain.doFilter(request, response);
        } else {
            compressing = new GzipResponse((HttpServletResponse) response);
            chain.doFilter(request, compressing);
        }
        if (!request.isAsyncStarted()) {
            compressing.finish();
        }
    }

    private static final class GzipResponse extends HttpServletResponseWrapper {
        private GzipStream stream;
        private PrintWriter writer;

        GzipResponse(HttpServletResponse response) {
            super(response);
        }

        @Override
        public ServletOutputStream getOutputStream() throws IOException {
            if (stream == null) {
                setHeader("Content-Encoding", "gzip");
                addHeader("Vary", "Accept-Encoding");
                stream = new GzipStream(super.getOutputStream());
            }
            return stream;
        }

        @Override
        public PrintWriter getWriter() throws IOException {
            if (writer == null) {
                writer = new PrintWriter(new OutputStreamWriter(getOutputStream(), getCharacterEncoding()));
            }
            return writer;
        }

        @Override
        public void flushBuffer() throws IOException {
            if (writer != null) {
                writer.flush();
            } else if (stream != null) {
                stream.flush();
            }
            super.flushBuffer();
        }

        @Override
        public void setContentLength(int length) {
            // of the body before it was compressed
        }

        @Override
        public void setContentLengthLong(long length) {
            // of the body before it was compressed
        }

        void finish() throws IOException {
            if (writer != null) {
                writer.flush();
            }
            if (stream != null) {
                stream.gzip.finish();
            }
        }
    }

    private static final class GzipStream extends ServletOutputStream {
        private final ServletOutputStream target;
        private final GZIPOutputStream gzip;

        GzipStream(ServletOutputStream target) throws IOException {
            this.target = target;
            this.gzip = new GZIPOutputStream(target, 512, true);
        }

        @Override
        public boolean isReady() {
            return target.isReady();
        }

        @Override
        public void setWriteListener(WriteListener listener) {
            target.setWriteListener(listener);
        }

        @Override
        public void write(int value) throws IOException {
            gzip.write(value);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            gzip.write(bytes, offset, length);
        }

        @Override
        public void flush() throws IOException {
            gzip.flush();
        }

        @Override
        public void close() throws IOException {
            gzip.close();
        }
    }
}
