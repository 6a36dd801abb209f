package io.idempotence.server.servlet;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.Part;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UnsupportedEncodingException;
import java.nio.charset.Charset;
import java.util.Collection;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A request whose body was read before the handler runs, and whose asynchronous processing is observed. */
final class HeldRequest extends HttpServletRequestWrapper {
    private final HeldBody body;
    private final BypassWarning bypassWarning;
    private final AsyncStarter async;
    private @Nullable ServletRequest examined;
    private boolean throughFilterInFront;
    /** The form below the request of a filter in front that overrides parameters; null if there is no such filter. */
    private @Nullable FormRequest below;

    /** The starter of asynchronous processing whose end is observed. */
    interface AsyncStarter {
        AsyncContext startAsync();

        AsyncContext startAsync(ServletRequest request, ServletResponse response);

        @Nullable
        AsyncContext asyncContext();
    }

    HeldRequest(HttpServletRequest request, HeldBody body, BypassWarning bypassWarning, AsyncStarter async) {
        super(request);
        this.body = body;
        this.bypassWarning = bypassWarning;
        this.async = async;
    }

    /** The request as the container or the filters in front pass it on in this dispatch. */
    HttpServletRequest container() {
        return (HttpServletRequest) getRequest();
    }

    /** Whether a handler that has {@code request} reads {@code body}. */
    static boolean reads(ServletRequest request, HeldBody body) {
        return Wrappers.find(request, current -> current instanceof HeldRequest held && held.body == body) != null;
    }

    /** Returns the request of an error page, with the form that the container can no longer parse. */
    static HttpServletRequest ofErrorPage(HttpServletRequest request, HeldBody body) {
        FormRules rules = FormRules.of(request);
        return rules != null && body.hasForm() ? new FormRequest(request, body, rules) : request;
    }

    // ---- body and parameters

    @Override
    public ServletInputStream getInputStream() throws IOException {
        return body.isOfContainer() ? super.getInputStream() : body.stream();
    }

    @Override
    public BufferedReader getReader() throws IOException {
        FormRules rules = FormRules.of(container());
        return body.isOfContainer() ? super.getReader() : body.reader(rules != null && rules.readsStrictly());
    }

    @Override
    public void setCharacterEncoding(String encoding) throws UnsupportedEncodingException {
        super.setCharacterEncoding(encoding);
        if (!body.isOfContainer() || body.parts() != null) {
            body.setEncoding(encoding);
        }
    }

    @Override
    public void setCharacterEncoding(Charset encoding) {
        try {
            setCharacterEncoding(encoding.name());
        } catch (UnsupportedEncodingException e) {
            throw new IllegalStateException("the name of a Charset was not found", e);
        }
    }

    @Override
    public @Nullable String getCharacterEncoding() {
        if (body.parts() != null) {
            return body.parts().encoding(super.getCharacterEncoding());
        }
        return body.isOfContainer() ? super.getCharacterEncoding() : body.encoding();
    }

    @Override
    public Collection<Part> getParts() throws IOException, ServletException {
        FormRules rules = FormRules.of(container());
        return body.parts() == null || rules == null
                ? super.getParts()
                : body.parts().parts(super.getParts(), rules);
    }

    @Override
    public @Nullable Part getPart(String name) throws IOException, ServletException {
        if (body.parts() == null || FormRules.of(container()) == null) {
            return super.getPart(name);
        }
        for (Part part : getParts()) {
            if (name.equals(part.getName())) {
                return part;
            }
        }
        return null;
    }

    @Override
    public @Nullable String getParameter(String name) {
        String value = parameters().getParameter(name);
        lookForBypass(name, value == null ? Set.of() : Set.of(name));
        return value;
    }

    @Override
    public String @Nullable [] getParameterValues(String name) {
        String[] values = parameters().getParameterValues(name);
        lookForBypass(name, values == null ? Set.of() : Set.of(name));
        return values;
    }

    @Override
    public Enumeration<String> getParameterNames() {
        List<String> names = Collections.list(parameters().getParameterNames());
        lookForBypass(null, names);
        return Collections.enumeration(names);
    }

    @Override
    public Map<String, String[]> getParameterMap() {
        Map<String, String[]> all = parameters().getParameterMap();
        lookForBypass(null, all.keySet());
        return all;
    }

    /** The request that has the parameters, those of the form included. */
    private HttpServletRequest parameters() {
        FormRules rules = FormRules.of(container());
        return throughFilterInFront() || rules == null || !body.hasParameters(this, rules)
                ? container()
                : new FormRequest(container(), body, rules);
    }

    /**
     * Whether a filter in front overrides parameters, so that they are read through its request. The form, which the container can no
     * longer parse, is then inserted below that request.
     */
    private boolean throughFilterInFront() {
        if (examined != getRequest()) {
            examined = getRequest();
            throughFilterInFront = putFormBelowFilterInFront();
        }
        return throughFilterInFront;
    }

    private boolean putFormBelowFilterInFront() {
        FormRules rules = FormRules.of(container());
        if (rules == null || !body.hasParameters(this, rules)) {
            return false;
        }
        ServletRequestWrapper overriding = null;
        ServletRequest current = getRequest();
        while (current instanceof ServletRequestWrapper wrapper) {
            if (current instanceof FormRequest form && form.body == body) {
                below = form;
                return true;
            }
            if (!isOfContainer(current) && overridesParameters(current.getClass())) {
                overriding = wrapper;
            }
            current = wrapper.getRequest();
        }
        if (overriding == null) {
            return false;
        }
        below = new FormRequest((HttpServletRequest) overriding.getRequest(), body, rules);
        overriding.setRequest(below);
        return true;
    }

    /**
     * Warns if a filter in front read parameters from the container itself, which has no fields of a form whose body was read. Leaves the
     * form unread.
     *
     * @param asked the name of the parameter; null for all
     * @param found the names that were found
     */
    private void lookForBypass(@Nullable String asked, Collection<String> found) {
        FormRequest form = throughFilterInFront ? below : null;
        boolean isFound = asked != null && !found.isEmpty();
        if (isFound || form == null || form.asked || body.isOfContainer() || bypassWarning.isLogged()) {
            return;
        }
        Set<String> names = form.namesOfForm();
        if (asked == null ? !found.containsAll(names) : names.contains(asked)) {
            bypassWarning.log(getRequest().getClass());
        }
    }

    /** Tomcat wraps a request that it dispatches. */
    private static boolean isOfContainer(ServletRequest request) {
        return request.getClass().getName().startsWith("org.apache.catalina.");
    }

    private static boolean overridesParameters(Class<?> wrapper) {
        return Stream.of(wrapper.getMethods())
                .anyMatch(method -> method.getName().startsWith("getParameter")
                        && method.getDeclaringClass() != ServletRequestWrapper.class);
    }

    /** A request with the parameters of a held form, for a filter in front or for an error page. */
    private static final class FormRequest extends HttpServletRequestWrapper {
        private final HeldBody body;
        private final FormRules rules;
        private boolean asked;
        private @Nullable Set<String> names;

        FormRequest(HttpServletRequest request, HeldBody body, FormRules rules) {
            super(request);
            this.body = body;
            this.rules = rules;
        }

        @Override
        public @Nullable String getParameter(String name) {
            String[] values = values(name);
            return values == null ? null : values[0];
        }

        @Override
        public String @Nullable [] getParameterValues(String name) {
            String[] values = values(name);
            return values == null ? null : values.clone();
        }

        private String @Nullable [] values(String name) {
            asked = true;
            return body.values(name, container(), rules);
        }

        @Override
        public Enumeration<String> getParameterNames() {
            return Collections.enumeration(getParameterMap().keySet());
        }

        @Override
        public Map<String, String[]> getParameterMap() {
            asked = true;
            return body.parameters(container(), rules);
        }

        private HttpServletRequest container() {
            return (HttpServletRequest) getRequest();
        }

        private Set<String> namesOfForm() {
            if (names == null) {
                names = body.namesOfForm(this, rules);
            }
            return names;
        }
    }

    // ---- asynchronous processing

    @Override
    public AsyncContext startAsync() {
        return async.startAsync();
    }

    @Override
    public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
        return async.startAsync(request, response);
    }

    @Override
    public @Nullable AsyncContext getAsyncContext() {
        return async.asyncContext();
    }
}
